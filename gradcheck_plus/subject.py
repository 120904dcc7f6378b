"""Whom a case is run under."""

from dataclasses import dataclass
from typing import Any, Literal

from gradcheck_plus.case import Plan
from gradcheck_plus.source import Calls

Kind = Literal["checkpoint", "wrapper", "stage-backward", "split-backward", "function"]
#: The kinds that modules are run under.
KINDS: tuple[Kind, ...] = ("checkpoint", "wrapper", "stage-backward", "split-backward")
#: Those under which every segment is a stage.
STAGES: tuple[Kind, ...] = ("stage-backward", "split-backward")
#: How a printed model calls its regions, by kind of subject.
CALLS: dict[Kind, Calls] = {
    "checkpoint": "subject",
    "wrapper": "direct",
    "stage-backward": "subject",
    "split-backward": "subject",
}
#: The field of a case's plan that a subject is made of; empty for one that is told nothing.
Planned = Literal["", "saved", "layers", "pieces"]
#: Stands between the targets of the two passes of a ``split-backward``.
PAIR = " + "


@dataclass(frozen=True)
class Subject:
    """An implementation of a VJP: the one under test, or plain autograd.

    Attributes:
        name: how reports name it.
        kind: how it is called.
        call: the implementation, with the signature of its kind, a pair of them for ``split-backward``; with `planned`, what
            makes one.
        contract: the name of what it promises.
        target: how to import it, for repros; empty for a live object.
        builds_on: the built-in subject that it calls, whose known faults and limits are then its own.
        planned: the field of a case's plan that `call` makes the implementation of.
        aims: traits that every case aims at, since the subject does nothing special elsewhere.
    """

    name: str
    kind: Kind
    call: Any
    contract: str
    target: str = ""
    builds_on: str = ""
    planned: Planned = ""
    aims: tuple[str, ...] = ()

    def under(self, plan: Plan) -> Any:
        """Return the implementation for a case with this plan."""
        return self.call(getattr(plan, self.planned)) if self.planned else self.call
