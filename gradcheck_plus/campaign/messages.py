"""What a campaign and its worker process say to each other: one JSON line a message."""

import msgspec

from gradcheck_plus.campaign.plan import Block, Described, Explained, Failure, Inspected, Key, Outcome, Search
from gradcheck_plus.case import Case
from gradcheck_plus.mismatch import Mismatch


class Setup(msgspec.Struct, frozen=True, tag=True):
    """Begin: search this. `probe` is whether the subject may be called to see what it is built on."""

    search: Search
    inflight: str
    probe: bool = True


class RunBlock(msgspec.Struct, frozen=True, tag=True):
    """Run a block."""

    block: Block


class FindCase(msgspec.Struct, frozen=True, tag=True):
    """Say which case has this number, without running it."""

    block: Block
    number: int


class Explain(msgspec.Struct, frozen=True, tag=True):
    """Shrink and explain a failure, holding a trait; candidates with these numbers are not run."""

    failure: Failure
    key: Key
    seconds: float | None
    hold: str = ""
    skip: frozenset[int] = frozenset()


class Inspect(msgspec.Struct, frozen=True, tag=True):
    """Say what a report needs to know of a case that fails with a mismatch."""

    case: Case
    mismatch: Mismatch


class Judge(msgspec.Struct, frozen=True, tag=True):
    """Judge one case."""

    case: Case


Request = Setup | RunBlock | FindCase | Explain | Inspect | Judge


class Judged(msgspec.Struct, frozen=True):
    """The verdict of one case: its name, the mismatches that nothing excuses, and those that something does."""

    name: str
    faults: tuple[Mismatch, ...] = ()
    excused: tuple[Mismatch, ...] = ()
    reason: str = ""


class Reply(msgspec.Struct, frozen=True, omit_defaults=True):
    """The answer to a request, in the field of its kind; or an error: that of a wrong call, or of the tool itself."""

    described: Described | None = None
    outcome: Outcome | None = None
    case: Case | None = None
    explained: Explained | None = None
    inspected: Inspected | None = None
    judged: Judged | None = None
    wrong_call: str = ""
    failed: str = ""
