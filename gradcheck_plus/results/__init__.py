"""What a check says: as structs, which are the JSON of ``--json``, and as text."""

from gradcheck_plus.divergence import Divergence
from gradcheck_plus.results.structs import (
    FAULT,
    INCONCLUSIVE,
    MATCH,
    SCHEMA,
    TOOL_FAILED,
    WRONG_CALL,
    CheckResult,
    Costs,
    Counts,
    Excused,
    Fault,
    Pairs,
    Report,
    Tool,
    Verdict,
    exit_code,
)
from gradcheck_plus.results.text import case_lines, check_text, headline, mismatch_text

__all__ = [
    "FAULT",
    "INCONCLUSIVE",
    "MATCH",
    "SCHEMA",
    "TOOL_FAILED",
    "WRONG_CALL",
    "CheckResult",
    "Costs",
    "Counts",
    "Divergence",
    "Excused",
    "Fault",
    "Pairs",
    "Report",
    "Tool",
    "Verdict",
    "case_lines",
    "check_text",
    "exit_code",
    "headline",
    "mismatch_text",
]
