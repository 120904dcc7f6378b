"""Central differences of a forward, next to what its rule says."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from gradcheck_plus.graph.redoing import Point, direction

#: The step, relative to each element: its cube and the float64 unit over it are both far below the tolerance.
_STEP = 1e-6

#: How far the two may be apart, relative to what is summed; and to the outputs, whose rounding shows in the difference.
_RELATIVE, _ROUNDING = 1e-5, 1e-8

_DIRECTIONS = 2


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


def differences(point: Point, slot: int, gradient: torch.Tensor | None) -> Iterator[Difference]:
    """Compare the gradient of one input with differences along some random directions."""
    generator = torch.Generator().manual_seed(2 + slot)
    for _ in range(_DIRECTIONS):
        yield _difference(point, slot, gradient, direction(point.inputs[slot], generator))


def _difference(point: Point, slot: int, gradient: torch.Tensor | None, step: torch.Tensor) -> Difference:
    above, below = (_moved(point, slot, sign * _STEP * step) for sign in (1, -1))
    slope, bend, size = 0.0, 0.0, 0.0
    for g, up, here, down in zip(point.cotangents, above, point.here, below, strict=True):
        slope += _sum(g * (up - down), g) / (2 * _STEP)
        # The slope jumps by this much at a kink, where any value between is as good; noise in the forward shows here too.
        bend += _sum((g * (up - 2 * here + down)).abs(), g) / _STEP
        size += _sum((g * here).abs(), g)
    parts = torch.zeros(()) if gradient is None else gradient * step
    got = parts.sum().item()
    tolerance = _RELATIVE * (parts.abs().sum().item() + abs(slope)) + _ROUNDING * size
    return Difference(_judged(slope, got, tolerance, bend), slot, slope, None if gradient is None else got)


def _moved(point: Point, slot: int, by: torch.Tensor) -> list[torch.Tensor]:
    inputs: Sequence[torch.Tensor] = [x + by if i == slot else x for i, x in enumerate(point.inputs)]
    return point.outputs(inputs)


def _sum(terms: torch.Tensor, cotangent: torch.Tensor) -> float:
    """Add up the terms whose cotangent is not zero: the outputs of others may be infinite."""
    return terms.where(cotangent != 0, 0).sum().item()


def _judged(slope: float, got: float, tolerance: float, bend: float) -> Literal["match", "fault", "inconclusive"]:
    if not math.isfinite(slope) or not math.isfinite(bend):
        return "inconclusive"
    if not math.isfinite(got):
        return "fault" if bend <= _RELATIVE * max(abs(slope), 1.0) else "inconclusive"
    error = abs(slope - got)
    if error <= tolerance:
        return "match"
    return "fault" if error > tolerance + bend else "inconclusive"
