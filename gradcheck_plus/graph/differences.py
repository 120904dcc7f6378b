"""Central differences of a forward, next to what its rule says."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import torch

from gradcheck_plus.graph.redoing import direction

#: The step, relative to each element: its cube and the float64 unit over it are both far below the tolerance.
STEP = 1e-6

#: How far the two may be apart, relative to what is summed; and to the outputs, whose rounding shows in the difference.
RELATIVE, ROUNDING = 1e-5, 1e-8

_DIRECTIONS = 2


class Differentiable(Protocol):
    """A forward in float64 at one point, as `gradcheck_plus.graph.redoing.Point` is one."""

    @property
    def inputs(self) -> Sequence[torch.Tensor]:
        """What it is a function of."""

    @property
    def cotangents(self) -> Sequence[torch.Tensor]:
        """What its outputs are multiplied by before they are added up."""

    @property
    def here(self) -> Sequence[torch.Tensor]:
        """Its outputs at this point."""

    def outputs(self, inputs: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        """Return the outputs for other inputs."""


@dataclass(frozen=True)
class Difference:
    """A derivative in one direction of one input, by differences and by the rule."""

    verdict: Literal["match", "fault", "inconclusive"]
    slot: int
    expected: float
    got: float | None

    def __str__(self) -> str:
        said = "None" if self.got is None else f"{self.got:.6g}"
        return (
            f"along a random direction of tensor input {self.slot}, differences give {self.expected:.6g}, its backward {said}"
        )


def differences(point: Differentiable, slot: int, gradient: torch.Tensor | None) -> Iterator[Difference]:
    """Compare the gradient of one input with differences along some random directions."""
    generator = torch.Generator().manual_seed(2 + slot)
    for _ in range(_DIRECTIONS):
        yield difference(point, slot, gradient, direction(point.inputs[slot], generator))


def difference(point: Differentiable, slot: int, gradient: torch.Tensor | None, step: torch.Tensor) -> Difference:
    """Compare the gradient of one input with a difference along a direction, as large in each element as the input."""
    above, below = (_moved(point, slot, sign * STEP * step) for sign in (1, -1))
    slope, bend, size = 0.0, 0.0, 0.0
    for g, up, here, down in zip(point.cotangents, above, point.here, below, strict=True):
        slope += _sum(g * (up - down), g) / (2 * STEP)
        # The slope jumps by this much at a kink, where any value between is as good; noise in the forward shows here too.
        bend += _sum((g * (up - 2 * here + down)).abs(), g) / STEP
        size += _sum((g * here).abs(), g)
    parts = torch.zeros(()) if gradient is None else gradient * step
    got = parts.sum().item()
    tolerance = RELATIVE * (parts.abs().sum().item() + abs(slope)) + ROUNDING * size
    return Difference(judged(slope, got, tolerance, bend), slot, slope, None if gradient is None else got)


def _moved(point: Differentiable, slot: int, by: torch.Tensor) -> Sequence[torch.Tensor]:
    inputs: Sequence[torch.Tensor] = [x + by if i == slot else x for i, x in enumerate(point.inputs)]
    return point.outputs(inputs)


def _sum(terms: torch.Tensor, cotangent: torch.Tensor) -> float:
    """Add up the terms whose cotangent is not zero: the outputs of others may be infinite."""
    return terms.where(cotangent != 0, 0).sum().item()


def judged(slope: float, got: float, tolerance: float, bend: float) -> Literal["match", "fault", "inconclusive"]:
    """Say whether a derivative is what a difference says, where that bends by so much."""
    if not math.isfinite(slope) or not math.isfinite(bend):
        return "inconclusive"
    if not math.isfinite(got):
        return "fault" if bend <= RELATIVE * max(abs(slope), 1.0) else "inconclusive"
    error = abs(slope - got)
    if error <= tolerance:
        return "match"
    return "fault" if error > tolerance + bend else "inconclusive"
