"""What a check says, as data: the JSON of ``--json`` is these structs."""

from typing import Any, Literal

import msgspec

from gradcheck_plus.divergence import Divergence
from gradcheck_plus.errors import GradientMismatch, Inconclusive
from gradcheck_plus.mismatch import Figures

SCHEMA = 1

Verdict = Literal["match", "fault", "inconclusive"]


class Counts(msgspec.Struct):
    """How many cases were run and what became of them.

    Attributes:
        run: executed.
        judged: compared, with at least one gradient that is not zero.
        vacuous: compared, but every gradient was zero though nothing in the case makes it so on purpose.
        refused: the subject raised where its contract says that it does, or a documented limit excuses whatever it did; or a
            function, or its reference, says that it does not take such a call.
        invalid: plain autograd raised though the case did not say that it may; a mistake of ours.
        kinks: derivatives that were left out, since the function is not smooth there; of functions only.
    """

    run: int = 0
    judged: int = 0
    vacuous: int = 0
    refused: int = 0
    invalid: int = 0
    kinks: int = 0

    def add(self, other: "Counts") -> None:
        """Add the counts of another block."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Costs(msgspec.Struct):
    """What the subject costs next to plain autograd, summed over the cases that were measured: the first match of each block.

    Attributes:
        cases: how many.
        plain_calls, calls: how often modules were run, recomputations included.
        plain_saved, saved: bytes that autograd saved in the forwards. What a subject saves under saved-tensor hooks of its own
            is not seen.
    """

    cases: int = 0
    plain_calls: int = 0
    calls: int = 0
    plain_saved: int = 0
    saved: int = 0

    def add(self, other: "Costs") -> None:
        """Add the costs of another block."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


class Excused(msgspec.Struct, frozen=True):
    """A mismatch that an expectation covers, and in how many cases it came."""

    trait: str
    kind: str
    role: str
    count: int
    source: str


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """One distinct fault, shrunk.

    Attributes:
        fingerprint: names the fault across runs: subject, kind, role and trigger.
        leaf: where it shows, as code.
        subject: the name of the subject.
        check: the name of the check, of a function.
        error: the type of the exception, if it is one.
        cases_to_find: how many cases were run until the first one that shows it, that one included.
        statements: the size of the shrunk program.
        trigger: the traits that the case must have; None where they could not be told.
        first_divergence: where the shrunk case and plain autograd part first; None if that was not looked for.
        also_fails: torch's own subjects of the same kind on which the shrunk case fails too.
        repro: the name of the file that the standalone program is written to, where files are written.
        replay: the name of the file that the case is written to as JSON, where files are written.
        program: the text of the standalone program.
        case: the case as JSON.
    """

    fingerprint: str
    kind: str
    role: str
    leaf: str
    subject: str
    error: str
    message: str
    expected: str
    got: str
    figures: Figures | None
    cases_to_find: int
    statements: int
    trigger: tuple[str, ...] | None
    also_fails: tuple[str, ...]
    first_divergence: Divergence | None
    repro: str
    replay: str
    program: str
    case: str
    check: str = ""


class Pairs(msgspec.Struct):
    """How many pairs of traits met in a judged case, of those that can be aimed at together."""

    judged: int
    possible: int


class CheckResult(msgspec.Struct, kw_only=True):
    """The outcome of one check."""

    name: str
    kind: str
    target: str
    contract: str
    seed: int
    settings: dict[str, Any]
    verdict: Verdict
    reason: str
    cases: Counts
    costs: Costs
    traits: dict[str, int]
    pairs: Pairs
    faults: list[Fault]
    known: list[Excused]
    limits: list[Excused]
    volatile: dict[str, Any]

    def raise_if_faulty(self) -> None:
        """Do nothing if the verdict is ``match``.

        Raises:
            GradientMismatch: there is a fault; the message is the report.
            Inconclusive: the check could not tell, with the reason.
        """
        if self.verdict == "match":
            return
        from gradcheck_plus.results.text import check_text

        text = check_text(self)
        if self.faults and "out" not in self.volatile:
            text += f"\n\n{_NO_FILES}"
        raise (GradientMismatch if self.verdict == "fault" else Inconclusive)(text)


_NO_FILES = (
    "  The result's `.faults[0].program` is a standalone program that fails as long as this fault is there. pytest's option\n"
    "  --gradcheck-out=DIR writes such a program, and a case to replay, for every fault."
)


class Tool(msgspec.Struct, frozen=True):
    """What ran."""

    version: str
    torch: str
    hypothesis: str
    python: str
    device: str


class Report(msgspec.Struct, kw_only=True):
    """Everything a command found; written by ``--json``."""

    schema: int = SCHEMA
    exit_code: int
    tool: Tool
    checks: list[CheckResult]


#: Exit codes: nothing wrong, a fault, a wrong call, inconclusive, the tool itself failed.
MATCH, FAULT, WRONG_CALL, INCONCLUSIVE, TOOL_FAILED = range(5)


def exit_code(checks: list[CheckResult]) -> int:
    """Return the exit code of some checks: a fault outweighs an inconclusive one."""
    verdicts = {check.verdict for check in checks}
    if "fault" in verdicts:
        return FAULT
    return INCONCLUSIVE if "inconclusive" in verdicts or not checks else MATCH
