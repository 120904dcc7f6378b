"""Which line of a case a mismatch is about. Needs no torch: the process that reports asks too."""

import re

from gradcheck_plus.case import Case
from gradcheck_plus.divergence import Direction, Divergence
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.source import input_lines, program_source

#: Roles of things that are there after the forward.
_FORWARD = ("output", "buffer", "input", "forward-hook")


def not_seen(case: Case, mismatch: Mismatch) -> Divergence:
    """Return the statement that a mismatch is about, where no run shows more."""
    text = f"every operation and every node agrees; {mismatch.message}"
    direction: Direction = "forward" if mismatch.role in _FORWARD else "backward"
    return Divergence(mismatch.leaf, statement_of(case, mismatch.leaf), direction, "not-seen", "", text)


def statement_of(case: Case, leaf: str) -> str:
    """Return the line of a case that a leaf is about: that makes the output, or uses the primal, parameter or buffer.

    Args:
        case: the case.
        leaf: its path as code, as in a mismatch.
    """
    lines = [line.strip() for line in [*program_source(case.program).splitlines(), *input_lines(case, 0)]]
    found = re.match(r"outputs(?:_\d+)?(?:\[(\d+)\])?", leaf)
    if found and len(case.program.segments) > 1:
        wanted = rf"^out{found[1] or 0} = "
    elif found:
        wanted = r"^return (?!locals|out\d)"
    else:
        names = re.findall(r"\w+", leaf.removesuffix(".grad").removesuffix(".gradients"))
        name = names[-2] if len(names) > 3 and not names[-1].isdigit() else (names or [leaf])[-1]
        wanted = rf"^(?!def |class |{name} =|self\.{name} =|super).*\b{name}\b"
    found_line = next((line for line in lines if re.search(wanted, line)), "")
    later = re.fullmatch(r"(\w+)_\d+(\.grad)?", leaf)  # of a later forward
    return found_line or (statement_of(case, later[1]) if later else "")
