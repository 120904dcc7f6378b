"""A point: a sample call with its variations made, and the program that calls the function there."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from gradcheck_plus.functions import support
from gradcheck_plus.functions.tested import Argument, Sample

#: Layouts by name; "" is contiguous.
LAYOUTS: dict[str, Callable[[torch.Tensor], torch.Tensor] | None] = {
    "": None,
    "transposed": support.transposed,
    "strided": support.strided,
    "offset": support.offset,
    "expanded": support.expanded,
}


@dataclass
class Slot:
    """One tensor of the call: its values, and how it is passed.

    Attributes:
        argument: which one it is.
        value: its values.
        grad: it requires grad.
        layout: how the leaf lies in memory.
        through: what is passed, as code with ``{}`` for the leaf; ``{}`` for the leaf itself.
        same_as: the variable of the leaf that is passed in its place.
        main_grad: it has a `main_grad`: 1, and a flag that says whether that was used: 2.
        used_elsewhere: an ordinary operation uses it too.
    """

    argument: Argument
    value: torch.Tensor
    grad: bool
    layout: str = ""
    through: str = "{}"
    same_as: str = ""
    main_grad: int = 0
    used_elsewhere: bool = False

    @property
    def floating(self) -> bool:
        """Could it require grad?"""
        return self.value.is_floating_point() or self.value.is_complex()

    def leaf(self) -> torch.Tensor:
        """Return the leaf, a new one every time."""
        made: torch.Tensor = support.leaf(self.value, LAYOUTS[self.layout], self.grad)
        if self.main_grad:
            vars(made)["main_grad"] = torch.zeros_like(made)
            if self.main_grad == 2:
                vars(made)["grad_added_to_main_grad"] = False
        return made


@dataclass
class Point:
    """Where a function is called.

    Attributes:
        sample: the sample call.
        slots: its tensors.
        autocast: the dtype of autocast; empty for none.
        use: the lines that use the result ``y``, the last of which returns what is added up.
        times: how often the backward runs.
        inplace: the function writes into its arguments: it is passed copies.
        low: the least precise dtype of the call.
    """

    sample: Sample
    slots: list[Slot]
    autocast: str = ""
    use: tuple[str, ...] = ("return terms(y)",)
    times: int = 1
    inplace: bool = False
    names: frozenset[str] = field(default_factory=frozenset)

    @property
    def variables(self) -> list[str]:
        """The variables of the leaves."""
        return [slot.argument.variable for slot in self.slots]

    def leaves(self) -> list[torch.Tensor]:
        """Return the leaves, new ones every time; one that another stands for is there too, and unused."""
        return [slot.leaf() for slot in self.slots]

    @property
    def needed(self) -> list[int]:
        """The slots that can have a gradient."""
        return [i for i, s in enumerate(self.slots) if s.grad and not s.same_as]

    # the program ----------------------------------------------------------------------------------------------------

    def called(self, scale: str = "") -> str:
        """Return the call as code, with every leaf as it is passed."""
        passed = {slot.argument.variable: self._passed(slot, scale) for slot in self.slots}
        return _renamed(self.sample.text, passed)

    def _passed(self, slot: Slot, scale: str) -> str:
        origin = next((s for s in self.slots if s.argument.variable == slot.same_as), slot)
        text = origin.through.format(origin.argument.variable)
        if slot.floating and scale:
            return f"{text} * {scale}"
        return f"{text}.clone()" if slot.floating and self.inplace and text.isidentifier() else text

    @functools.cached_property
    def source(self) -> str:
        """The functions ``call`` and ``run``: the call alone, and with the use of its result; both take the leaves."""
        given = ", ".join(["op", *self.variables])
        call = [f"def call({given}):", *(f"    {line}" for line in self._guarded("return", self.called()))]
        uses = [line.replace("CALL2", self.called("0.75")).replace("CALL", self.called()) for line in self.use]
        if any(s.used_elsewhere for s in self.slots):
            others = ", ".join(s.argument.variable for s in self.slots if s.used_elsewhere)
            *before, last = uses
            uses = [*before, last.replace("return ", "return torch.cat([", 1) + f", terms([{others}])])"]
        run = [f"def run({given}):", *(f"    {line}" for line in self._guarded("y =", f"call({given})", bare=True))]
        return "\n".join([*call, "", "", *run, *(f"    {line}" for line in uses)]) + "\n"

    def _guarded(self, before: str, text: str, *, bare: bool = False) -> list[str]:
        if not self.autocast or bare:
            return [f"{before} {text}"]
        kind = self.slots[0].value.device.type
        return [f'with torch.autocast("{kind}", dtype=torch.{self.autocast}):', f"    {before} {text}"]

    @functools.cached_property
    def functions(self) -> dict[str, Any]:
        """``call`` and ``run``, and what they use."""
        space = {name: getattr(support, name) for name in dir(support)} | dict(self.sample.others)
        exec(_code(self.source), space)  # noqa: S102 - printed above
        return space

    @property
    def call(self) -> Callable[..., Any]:
        """``call(op, *leaves)``: the result."""
        made: Callable[..., Any] = self.functions["call"]
        return made

    @property
    def run(self) -> Callable[..., torch.Tensor]:
        """``run(op, *leaves)``: what a loss adds up."""
        made: Callable[..., torch.Tensor] = self.functions["run"]
        return made

    def in_double(self) -> "Point":
        """Return the same point in float64, without autocast: the truth."""
        slots = [replace(s, value=support.wide(s.value) if s.floating else s.value, main_grad=0) for s in self.slots]
        return Point(self.sample, slots, "", self.use, 1, self.inplace, self.names)


def plain_point(sample: Sample, *, double: bool, inplace: bool = False) -> Point:
    """Return the sample call itself: every floating tensor requires grad, in float64 if the function takes that."""
    slots = []
    for a in sample.arguments:
        floating = a.value.is_floating_point() or a.value.is_complex()
        value = support.wide(a.value) if floating and double else a.value
        slots.append(Slot(a, value, grad=floating and (a.grad or not any(o.grad for o in sample.arguments))))
    return Point(sample, slots, inplace=inplace)


@functools.lru_cache(maxsize=2048)
def _code(text: str) -> Any:
    return compile(text, "<call of a function>", "exec")


def _renamed(text: str, codes: dict[str, str]) -> str:
    """Put code in the place of variables; not where one is the name of a keyword argument."""
    names = "|".join(sorted(map(re.escape, codes), key=len, reverse=True))
    return re.sub(rf"(?<![\w.'\"])({names})\b(?!\s*=)", lambda found: codes[found[1]], text)
