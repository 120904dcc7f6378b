"""The parts of a campaign, as data that can be sent to another process. Needs neither torch nor Hypothesis."""

from collections import Counter
from typing import Protocol

import msgspec

from gradcheck_plus.case import Case
from gradcheck_plus.divergence import Divergence
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.results import Costs, Counts, Tool
from gradcheck_plus.settings import Settings
from gradcheck_plus.subject import Kind, Planned

#: What one search keeps while it shrinks: kind, role and, for an exception, its type.
Key = tuple[str, str, str]


class Search(msgspec.Struct, frozen=True, kw_only=True):
    """What one check searches.

    Attributes:
        kind: the kind of subject.
        settings: how it is searched.
        contract: the name or path of the contract; empty for the subject's own.
        target: the implementation, as a target; empty for a live object.
        module, inputs: the targets of a user's module factory and of its sample call, where those are checked.
        reference: the target of a function's reference; its sample call is `inputs` too.
        planted: whatever is found is the subject's own, though torch's may show it too; the first fault ends the search.
    """

    kind: Kind
    settings: Settings
    contract: str = ""
    target: str = ""
    module: str = ""
    inputs: str = ""
    planted: bool = False
    reference: str = ""


class Block(msgspec.Struct, frozen=True):
    """One block of a campaign.

    Attributes:
        number: its place in the campaign.
        seed: the campaign's seed.
        examples: how many cases it has.
        skip: numbers of cases that are drawn and not run, since they hang or kill the process.
        stop: the number of the first case that is not run; 0 for none.
        seconds: after so many no further case is begun; None for no limit.
    """

    number: int
    seed: int
    examples: int
    skip: frozenset[int] = frozenset()
    stop: int = 0
    seconds: float | None = None


class Failure(msgspec.Struct, frozen=True):
    """A case that shows a fault: its number in the block, from 1, what differs, and its traits."""

    block: int
    number: int
    case: Case
    mismatches: tuple[Mismatch, ...]
    traits: frozenset[str]


class Outcome(msgspec.Struct, kw_only=True):
    """What a block found; outcomes add up.

    Attributes:
        excused: by (trait, effect, kind, role, source), how many cases had such a mismatch.
        pairs: the pairs of traits that met in a judged case.
        reasons: of the first few invalid cases, what plain autograd raised.
        unfinished: time ran out.
        interrupted: somebody wanted no further case.
    """

    counts: Counts = msgspec.field(default_factory=Counts)
    costs: Costs = msgspec.field(default_factory=Costs)
    traits: dict[str, int] = msgspec.field(default_factory=dict)
    pairs: set[tuple[str, str]] = msgspec.field(default_factory=set)
    excused: list[tuple[tuple[str, str, str, str, str], int]] = msgspec.field(default_factory=list)
    failures: list[Failure] = msgspec.field(default_factory=list)
    reasons: list[str] = msgspec.field(default_factory=list)
    unfinished: bool = False
    interrupted: bool = False

    def join(self, other: "Outcome") -> None:
        """Add the outcome of the next block."""
        self.counts.add(other.counts)
        self.costs.add(other.costs)
        self.traits = dict(Counter(self.traits) + Counter(other.traits))
        self.pairs |= other.pairs
        merged = Counter(dict(self.excused))
        merged.update(dict(other.excused))
        self.excused = sorted(merged.items())
        self.failures += other.failures
        self.reasons = (self.reasons + other.reasons)[:3]
        self.unfinished = self.unfinished or other.unfinished


class Explained(msgspec.Struct, frozen=True):
    """A shrunk fault, and what it needs.

    Attributes:
        trigger: the traits that the case has, none of which could be taken away without the fault; None where that was not
            tried, since the case hangs or kills the process.
        keys: the keys of everything that differs in this case: the same fault, seen elsewhere.
        tried: how many cases were run to shrink it.
    """

    case: Case
    mismatch: Mismatch
    trigger: tuple[str, ...] | None
    keys: tuple[Key, ...]
    tried: int = 0


class Inspected(msgspec.Struct, frozen=True):
    """What a report needs to know of a shrunk case.

    Attributes:
        outputs: (segment, path, shape, dtype) of every output that requires grad, as plain autograd leaves them.
        also_fails: the names of torch's own subjects on which it fails too.
        known: (trait, kind, role, source) of every known fault that torch's own subjects show there.
        divergence: where it and plain autograd part first.
        program: the standalone program, where only the runner can write it.
    """

    outputs: tuple[tuple[int, str, tuple[int, ...], str], ...] = ()
    also_fails: tuple[str, ...] = ()
    known: tuple[tuple[str, str, str, str], ...] = ()
    divergence: Divergence | None = None
    program: str = ""


class Described(msgspec.Struct, frozen=True):
    """What a runner says of itself and of its subject: names that reports need, and the traits that its cases aim at.

    `planned` is the field of a case's plan that the subject is made of.
    """

    tool: Tool
    name: str
    target: str
    contract: str
    builds_on: str
    aimed: tuple[str, ...]
    planned: Planned = ""


class Runner(Protocol):
    """Runs the parts of one check; each is a function of its arguments alone."""

    def describe(self) -> Described:
        """Say what is run."""

    def block(self, block: Block) -> Outcome:
        """Run one block."""

    def case_of(self, block: Block, number: int) -> Case:
        """Return a case of a block without running it."""

    def explain(self, failure: Failure, key: Key, seconds: float | None, *, hold: str = "") -> Explained | None:
        """Shrink and explain a failure; None if it does not fail any more."""

    def inspect(self, case: Case, mismatch: Mismatch) -> Inspected:
        """Return what a report needs to know of a case beyond what it says itself."""
