"""A recorded operation, run again in float64, where that can be done honestly."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch

from gradcheck_plus.compat import TorchDispatchMode, changes_operand, map_tensors, map_values, tensors
from gradcheck_plus.graph.forward import Call

#: How far away, relative to each element, a point is that is close by.
_CLOSE = 1e-3


class Unredoable(Exception):  # noqa: N818 - a condition, not a failure; its message is the reason
    """A forward that cannot be run again in float64 and be the same."""


@dataclass(frozen=True)
class Point:
    """A forward in float64 at one point.

    Attributes:
        call: the operation.
        inputs: its tensors in order, in float64 where they are floating.
        leaves: which of them need a gradient.
    """

    call: Call
    inputs: tuple[torch.Tensor, ...]
    leaves: tuple[int, ...]

    def outputs(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the outputs that have a gradient, for other inputs."""
        with torch.no_grad():
            found = _run(self.call, inputs)
        return [found[i] for i in self.judged]

    @cached_property
    def here(self) -> list[torch.Tensor]:
        """The outputs at this point."""
        return self.outputs(self.inputs)

    @cached_property
    def cotangents(self) -> list[torch.Tensor]:
        """Random cotangents, zero where an output is not finite."""
        generator = torch.Generator().manual_seed(0)
        drawn = [torch.randn(y.shape, generator=generator, dtype=torch.float64).to(y.device) for y in self.here]
        return [g.where(y.isfinite(), 0) for g, y in zip(drawn, self.here, strict=True)]

    def _graph(self) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Run the forward with leaves of its own; return these and all outputs."""
        leaves = {slot: self.inputs[slot].clone().requires_grad_() for slot in self.leaves}
        given = [leaves.get(i, value) for i, value in enumerate(self.inputs)]
        with torch.enable_grad():
            return list(leaves.values()), _run(self.call, given)

    @cached_property
    def judged(self) -> list[int]:
        """Which of the outputs have a gradient."""
        return [i for i, y in enumerate(self._graph()[1]) if y.requires_grad]

    def rule(self, *, strided: bool = False) -> dict[int, torch.Tensor | None]:
        """Return what the backward gives for the cotangents, by slot; perhaps for the same ones with other strides."""
        leaves, outputs = self._graph()
        judged = [outputs[i] for i in self.judged]
        if not judged:
            raise Unredoable("none of its outputs has a gradient when it is run alone")
        given = [_strided(g) for g in self.cotangents] if strided else self.cotangents
        with _said("backward"):
            found = torch.autograd.grad(judged, leaves, given, allow_unused=True)
        return dict(zip(self.leaves, found, strict=True))

    @property
    def nearby(self) -> "Point":
        """Another point, close by."""
        generator = torch.Generator().manual_seed(1)
        moved = [x + _CLOSE * direction(x, generator) if i in self.leaves else x for i, x in enumerate(self.inputs)]
        return replace(self, inputs=tuple(moved))


def direction(at: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Return a random step from a point, each element as large as the point's own; none where that is not finite."""
    size = at.abs().where(at != 0, 1).where(at.isfinite(), 0)
    return size * torch.randn(at.shape, generator=generator, dtype=torch.float64).to(at.device)


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """Return the same values, with others between them in memory."""
    return torch.stack([tensor, 1 - tensor], -1)[..., 0]


def redo(call: Call) -> Point:
    """Return a recorded operation at the inputs that it had, in float64.

    Raises:
        Unredoable: it cannot be told that what runs there is what ran.
    """
    given = tensors((call.args, call.kwargs))
    if call.has_changed:
        raise Unredoable("what went into it or came out of it was changed in place since")
    if any(t.is_complex() for t in (*given, *call.outputs)):
        raise Unredoable("it is complex, which is not checked yet")
    if any(map(callable, call.args)):
        raise Unredoable("it is given a function to call, whose backward may add to the `.grad` of parameters")
    _refuse_other_bits(call, given)
    inputs = tuple(t.detach().double() if t.is_floating_point() else t for t in given)
    return Point(call, inputs, tuple(i for i, t in enumerate(given) if t.is_floating_point() and t.requires_grad))


def _refuse_other_bits(call: Call, given: Sequence[torch.Tensor]) -> None:
    """Refuse an operation that gives something else than it did: it draws, or depends on what is not among its inputs."""
    may_write = call.is_function or changes_operand(call.function)
    # The layout of a copy may be another, and with it the bits.
    with torch.no_grad(), _said("forward"):
        again = tensors(_call(call, [t.detach().clone() for t in given] if may_write else given))
    same = len(again) == len(call.outputs) and all(map(_equal, again, call.outputs))
    if not same:
        raise Unredoable("its forward gives other values when it is run again: it draws, or depends on more than its inputs")


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())


def _call(call: Call, inputs: Sequence[torch.Tensor]) -> Any:
    """Call it with other tensors in the place of its own."""
    values = iter(inputs)
    args, kwargs = map_tensors(lambda _: next(values), (call.args, call.kwargs))
    return call.function.apply(*args) if call.is_function else call.function(*args, **kwargs)


def _run(call: Call, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Run a call in float64: also where it names a dtype, or takes the default one."""
    wider = replace(call, args=map_values(_widened, call.args), kwargs=map_values(_widened, call.kwargs))
    before, watch = torch.get_default_dtype(), _Narrow()
    torch.set_default_dtype(torch.float64)
    _seed(inputs)
    try:
        with _said("forward"), watch:
            found = tensors(_call(wider, [x.clone() for x in inputs]))  # it may write into what it is given
    finally:
        torch.set_default_dtype(before)
    if watch.seen:
        raise Unredoable(f"its forward computes in {watch.seen} where its inputs are float64")
    return found


def _seed(inputs: Sequence[torch.Tensor]) -> None:
    """Let every run draw the same."""
    torch.default_generator.manual_seed(0)
    for device in devices(inputs):
        torch.cuda.default_generators[device.index].manual_seed(0)


def devices(inputs: Sequence[torch.Tensor]) -> list[torch.device]:
    """Return the devices with random numbers of their own that some tensors are on."""
    return [device for device in {t.device for t in inputs} if device.type == "cuda"]


def _widened(value: Any) -> Any:
    return torch.float64 if isinstance(value, torch.dtype) and value.is_floating_point else value


class _Narrow(TorchDispatchMode):
    """Sees whether a result is less precise than float64: differences of it would be noise."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch does not annotate it
        self.seen: torch.dtype | None = None

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation."""
        found = func(*args, **(kwargs or {}))
        for tensor in tensors(found):
            if tensor.is_floating_point() and tensor.dtype != torch.float64:
                self.seen = tensor.dtype
        return found


@contextmanager
def _said(what: str) -> Iterator[None]:
    """Turn whatever user code raises into the reason why its node is not judged."""
    try:
        yield
    except Unredoable:
        raise
    except Exception as error:
        text = str(error).partition("\n")[0]
        raise Unredoable(f"its {what} raises {type(error).__name__} when it is run again: {text}") from error
