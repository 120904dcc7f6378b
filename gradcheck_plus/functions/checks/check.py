"""What a named check is, what it is given, and the table of them."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NoReturn

import torch

from gradcheck_plus.case import Call
from gradcheck_plus.functions.point import Point
from gradcheck_plus.functions.support import floats
from gradcheck_plus.functions.tested import Sample
from gradcheck_plus.functions.wording import mismatch
from gradcheck_plus.mismatch import Mismatch, MismatchKind
from gradcheck_plus.registry import Registry


class Refused(Exception):  # noqa: N818 - a condition
    """This is not a case: the reference, or the function itself, says that it does not do this."""


@dataclass
class Scene:
    """What a check is made of.

    Attributes:
        call: the case.
        point: where the function is called.
        op: the function.
        given: the function as the user named it.
        reference: what it should be; None where there is no such thing.
        when: the variations of the case in words.
        kinks: the derivatives that were left out.
        device: where it runs.
    """

    call: Call
    point: Point
    op: Callable[..., Any]
    given: Any
    reference: Callable[..., Any] | None
    when: str
    device: str = "cpu"
    kinks: int = 0
    judged: int = 0
    notes: list[str] = field(default_factory=list)

    def fault(
        self, kind: MismatchKind, leaf: str, said: str, *, expected: str = "", got: str = "", error: str = ""
    ) -> Mismatch:
        """Return what this check found."""
        rank = CHECKS[self.call.check].rank + (10 if self.call.names & EXTREME else 0)
        rank += 5 if kind == "raises" and self.call.names & {"other-size", "size-one"} else 0
        return mismatch(kind, self.call.check, leaf, said, expected=expected, got=got, error=error, rank=rank)

    @property
    def names(self) -> list[str]:
        """How reports name the arguments."""
        return [slot.argument.name for slot in self.point.slots]

    @property
    def where(self) -> str:
        """The variations, to be put behind a statement."""
        return f" when {self.when}" if self.when else ""

    @cached_property
    def narrowest(self) -> str:
        """The least precise dtype that the reference gives, where there is one: there is no more precision to be had."""
        if self.reference is None:
            return ""
        with torch.no_grad():
            ys = floats(self.point.call(self.reference, *self.point.leaves()))
        kinds = [str(y.real.dtype).removeprefix("torch.") for y in ys]
        return min(kinds, key=lambda k: torch.finfo(getattr(torch, k)).bits, default="")

    @cached_property
    def double(self) -> bool:
        """Is everything in float64?"""
        values = [s.value for s in self.point.slots if s.floating]
        return not self.point.autocast and all(v.dtype in (torch.float64, torch.complex128) for v in values)

    def refuse(self, reason: str) -> NoReturn:
        """End the check: this is not a case."""
        raise Refused(reason)


#: Variations whose faults say less of the cause; plainer ones are explained first.
EXTREME = frozenset({"size-zero", "larger-values", "tiny-values", "beyond-float16", "non-finite-values"})


#: A check that needs nothing but torch, so that a repro can print it: ``core(op, call, leaves, names)`` yields, for everything
#: that is wrong, which leaf (None for none), what kind of mismatch it is, and a sentence.
Core = Callable[..., Iterator[tuple[int | None, MismatchKind, str]]]


def natural(text: str, names: frozenset[str]) -> bool:
    """Is this how plain autograd itself refuses: what was saved is changed in place, or there is no such derivative?"""
    changed = names & {"result-changed-in-place", "producer-keeps-output"} and "custom Function" not in text
    in_place = re.search(
        "modified by an inplace operation|in-place|inplace|more than one element of the written-to tensor", text
    )
    return bool((changed and in_place) or "not implemented" in text or "derivative for" in text)


def by(core: Core) -> Callable[[Scene], Iterator[Mismatch]]:
    """Return the check that a core makes."""

    def run(scene: Scene) -> Iterator[Mismatch]:
        scene.judged += 1
        names = [f"`{name}`" for name in scene.names]
        for slot, kind, said in core(scene.op, scene.point.call, scene.point.leaves, names):
            broadcast = scene.point.alone and "invalid gradient at index" in said
            if kind == "raises" and (broadcast or (scene.reference is None and natural(said, scene.call.names))):
                scene.refuse(said)
            yield scene.fault(kind, "call" if slot is None else scene.names[slot], f"{said}{scene.where}")
            return  # the first one names the cause

    return run


@dataclass(frozen=True)
class Check:
    """A named check.

    Attributes:
        name: its public name; its page is ``docs/checks/<name>.md``.
        meaning: what it asks, in a sentence.
        run: makes it.
        core: the part of it that repros print, if it is one.
        forces: the variation that it is about, which every case of it has.
        source: a public report of who fails it.
        rank: how soon its faults are explained, 0 for first: those that name a cause come before those that name a symptom.
        often: how often it is drawn, next to the others.
        uses: it takes a use of the result.
        asked: it is made only if it is asked for by name, or if the sample call suits it.
        suits: it is made of this sample call unasked.
    """

    name: str
    meaning: str
    run: Callable[[Scene], Iterator[Mismatch]]
    source: str = ""
    core: Core | None = None
    forces: str = ""
    rank: int = 5
    often: int = 1
    uses: bool = False
    asked: bool = False
    suits: Callable[[Sample], bool] = lambda _: False


CHECKS: Registry[Check] = Registry("check")
