"""How a check is run: the settings that the command line, pytest and the one-call checks share."""

import re
from typing import Any

import msgspec

from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.options import OPTIONS


class Profile(msgspec.Struct, frozen=True):
    """How much a check runs, and what it must have judged so that finding nothing says something.

    Attributes:
        max_examples: cases, unless the settings say another number.
        every_trait: every trait that cases aim at must be in a judged case.
        pairs: this share of the pairs of them that can meet must have met in one.
    """

    max_examples: int
    every_trait: bool = False
    pairs: float = 0.0


#: Cases in one block; blocks are independent, so this is also the unit of work that can run elsewhere.
BLOCK = 100
#: By profile: how many cases a check runs, whether it must judge every trait that it aims at, and which share of their pairs.
PROFILES: dict[str, Profile] = {
    "quick": Profile(100),
    "default": Profile(500),
    "thorough": Profile(5000, every_trait=True, pairs=0.95),
}
DTYPES = ("float32", "float64", "bfloat16", "float16")


def _optional(name: str, value: Any) -> Any:
    """Return a field that is what an option of pytest's sets for the test run, else a value, if it is not written."""
    return msgspec.field(default_factory=lambda: OPTIONS.get(name, value))


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one check.

    A field that is not written is what the pytest plugin's options set for the test run, else a default of ours.

    Attributes:
        max_examples: how many cases to run, at least 1; 500 by default.
        seed: an integer; the same seed gives the same cases and the same results. By default 0.
        time_budget: seconds after which no further case is begun; None for no limit.
        device: ``cpu``, the default, ``cuda`` or ``cuda:<index>``.
        dtypes: the dtypes that values may have.
        traits: the traits to aim at; None for all of the kind.
        without: traits that no case may have.
        operations: the operations to draw from; None for the whole catalogue.
        checks: the named checks to make of a function; None for all that are not opt-in.
        without_checks: named checks that are not made.
        max_statements: the most statements of a segment.
        known: excuse the faults that are known of torch itself.
        keep_going: report every distinct fault, not only the first.
        profile: ``quick``, ``default`` or ``thorough``: what must have been judged, or the check is inconclusive. On the
            command line it sets `max_examples`, too. It asks nothing of a user's own module, whose traits are what they are.
        case_timeout: seconds that one case may take, where a check runs in a process of its own (the command line).

    Raises:
        InvalidArgument: a value is out of range.

    Example:
        >>> Settings(max_examples=0)
        Traceback (most recent call last):
        gradcheck_plus.errors.InvalidArgument: `max_examples`=0 runs nothing. Write at least 1.
    """

    max_examples: int = _optional("max_examples", 500)
    seed: int = _optional("seed", 0)
    time_budget: float | None = _optional("time_budget", None)
    device: str = _optional("device", "cpu")
    dtypes: tuple[str, ...] = DTYPES
    traits: tuple[str, ...] | None = None
    without: tuple[str, ...] = ()
    operations: tuple[str, ...] | None = None
    max_statements: int = 5
    checks: tuple[str, ...] | None = None
    without_checks: tuple[str, ...] = ()
    known: bool = _optional("known", True)
    keep_going: bool = _optional("keep_going", False)
    profile: str = "default"
    case_timeout: float = 30.0

    def __post_init__(self) -> None:
        """Refuse what cannot be run."""
        if self.profile not in PROFILES:
            raise InvalidArgument(f"`profile`={self.profile!r} is not known. Write one of {', '.join(PROFILES)}.")
        if self.max_examples < 1:
            raise InvalidArgument(f"`max_examples`={self.max_examples} runs nothing. Write at least 1.")
        if self.time_budget is not None and not self.time_budget > 0:
            raise InvalidArgument(f"`time_budget`={self.time_budget} leaves no time. Write a positive number of seconds.")
        if not self.case_timeout > 0:
            raise InvalidArgument(f"`case_timeout`={self.case_timeout} ends every case. Write a positive number of seconds.")
        if not re.fullmatch(r"cpu|cuda(:\d+)?", self.device):
            raise InvalidArgument(f"`device`={self.device!r} is not supported. Write cpu, cuda or cuda:<index>.")

    @property
    def blocks(self) -> list[int]:
        """The number of cases of each block."""
        full, rest = divmod(self.max_examples, BLOCK)
        return [BLOCK] * full + ([rest] if rest else [])
