"""Gradients by central differences of the function's own forward, element by element, kinks left out and counted."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch

from gradcheck_plus.functions.point import Point
from gradcheck_plus.functions.support import floats
from gradcheck_plus.graph.differences import RELATIVE, ROUNDING, STEP, Difference, difference, judged

#: Elements of one point whose derivatives are taken; of larger ones, so many that are evenly spread.
_MOST = 40
#: Further steps, relative to the usual one: what is wrong is so at each.
_SCALES = (0.1, 10.0)
#: Directions along which derivatives must add up.
_DIRECTIONS = 3
#: How far the slopes at two steps may be apart, relative to them, if they are to count.
_AGREE = 1e-3
#: Derivatives nearer than this to each other, relative to the largest or to 1, are taken for the same.
_FLOOR = 1e-9


@dataclass(frozen=True)
class Wrong:
    """A derivative that is not what differences say: which leaf, which element, the two values."""

    slot: int
    index: tuple[int, ...]
    expected: float
    got: float | None


class Terms:
    """What a loss adds up, as a function of the leaves; complex ones as pairs of real numbers."""

    def __init__(self, point: Point, op: Callable[..., Any]) -> None:
        self.point, self.op = point, op
        self.complex = [s.value.is_complex() for s in point.slots]
        self.inputs = [as_real(t) for t in (leaf.detach() for leaf in point.leaves())]

    def outputs(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return the terms for other leaves."""
        made = [torch.view_as_complex(t.contiguous()) if c else t for t, c in zip(inputs, self.complex, strict=True)]
        with torch.no_grad():
            return [self.point.run(self.op, *(t.clone() for t in made)).detach()]

    @cached_property
    def here(self) -> list[torch.Tensor]:
        """The terms at the point."""
        return self.outputs(self.inputs)

    @property
    def cotangents(self) -> list[torch.Tensor]:
        """Each counts as it is."""
        return [torch.ones_like(t).where(t.isfinite(), 0) for t in self.here]


def as_real(t: torch.Tensor) -> torch.Tensor:
    """Return a complex tensor as pairs of real numbers, and others as they are."""
    return torch.view_as_real(t) if t.is_complex() else t


def compared(point: Point, op: Callable[..., Any], gradients: Sequence[torch.Tensor | None]) -> tuple[list[Wrong], int]:
    """Compare gradients with differences.

    Returns:
        What is wrong, and how many derivatives were left out since the forward has a kink there, or jumps, or is not finite.
    """
    terms, wrong, kinks = Terms(point, op), [], 0
    if not all(t.isfinite().all() for t in terms.here):
        return [], sum(point.slots[i].value.numel() for i in point.needed)
    slots = point.needed
    for slot in slots:
        gradient = gradients[slot]
        given = None if gradient is None else as_real(gradient.detach())
        for element in _elements(terms.inputs[slot].numel()):
            found = _at(terms, slot, given, element)
            if found.verdict == "inconclusive":
                kinks += 1
            elif found.verdict == "fault" and not additive(terms, slots):
                return [], kinks + sum(terms.inputs[i].numel() for i in slots)
            elif found.verdict == "fault":
                shape = terms.inputs[slot].shape
                index = tuple(int(i) for i in torch.unravel_index(torch.tensor(element), shape)) if shape else ()
                wrong.append(Wrong(slot, index, found.expected, found.got))
    return wrong, kinks


def additive(terms: Terms, slots: Sequence[int], row: int | None = None) -> bool:
    """Is the derivative along some directions the sum of those along the elements? Where several values tie it may not be.

    A median of three equal values does not move with any one of them, but with all of them together: it has no gradient there,
    though no difference along an element shows a kink.
    """

    def at(steps: dict[int, torch.Tensor]) -> float:
        up, down = (
            terms.outputs([x + sign * steps[i] if i in steps else x for i, x in enumerate(terms.inputs)])[0] for sign in (1, -1)
        )
        moved = up - down if row is None else up[row] - down[row]
        return float(moved.where(moved.isfinite(), 0).sum()) / (2 * STEP)

    sizes = {i: terms.inputs[i].abs().where(terms.inputs[i] != 0, 1).where(terms.inputs[i].isfinite(), 0) for i in slots}
    parts = {i: torch.zeros_like(sizes[i]) for i in slots}
    for i in slots:
        for element in _elements(sizes[i].numel()):
            step = torch.zeros_like(sizes[i])
            step.view(-1)[element] = STEP * sizes[i].reshape(-1)[element]
            parts[i].view(-1)[element] = at({i: step})
    for seed in range(_DIRECTIONS):
        generator = torch.Generator().manual_seed(seed)
        signs = {
            i: (torch.randint(0, 2, sizes[i].shape, generator=generator) * 2 - 1).double()
            if seed
            else torch.ones_like(sizes[i])
            for i in slots
        }
        measured = {i: torch.zeros_like(sizes[i]) for i in slots}
        for i in slots:
            where = _elements(sizes[i].numel())
            measured[i].view(-1)[where] = signs[i].reshape(-1)[where]
        together = at({i: STEP * sizes[i] * measured[i] for i in slots})
        apart = sum(float((parts[i] * measured[i]).sum()) for i in slots)
        scale = sum(float(parts[i].abs().sum()) for i in slots)
        if abs(together - apart) > 1e-4 * max(scale, abs(together), 1e-9):
            return False
    return True


def _elements(count: int, most: int | None = _MOST) -> list[int]:
    return list(range(count)) if most is None or count <= most else [i * count // most for i in range(most)]


def _at(terms: Terms, slot: int, gradient: torch.Tensor | None, element: int) -> Difference:
    """Return what is said of one derivative: wrong only if it is so at several steps whose slopes agree."""
    at = terms.inputs[slot]
    size = float(at.reshape(-1)[element].abs()) or 1.0
    if size == float("inf") or size != size:
        return Difference("inconclusive", slot, float("nan"), None)
    first = _along(terms, slot, gradient, element, size)
    if first.verdict != "fault":
        return first
    others = [_along(terms, slot, gradient, element, size * scale) for scale in _SCALES]
    if any(other.verdict == "match" for other in others):
        return next(other for other in others if other.verdict == "match")
    if clear(first.expected, [other.expected for other in others], first.got or 0.0):
        return first
    return Difference("inconclusive", slot, first.expected, first.got)


def clear(slope: float, others: Sequence[float], got: float) -> bool:
    """Do the slopes at several steps agree, and better with each other than with what the backward gives?"""
    apart = min(abs(other - slope) for other in others)
    agree = apart <= _AGREE * max(abs(slope), 1e-6)
    return agree and (
        not math.isfinite(got) or (apart <= abs(slope - got) / 4 and abs(slope - got) > _FLOOR * max(abs(slope), abs(got), 1.0))
    )


def _along(terms: Terms, slot: int, gradient: torch.Tensor | None, element: int, size: float) -> Difference:
    step = torch.zeros_like(terms.inputs[slot], memory_format=torch.contiguous_format)
    step.view(-1)[element] = size
    one = None if gradient is None else gradient.reshape(-1)[element].reshape(1) * size
    found = difference(terms, slot, None if gradient is None else _only(gradient, element), step)
    got = None if one is None else float(one.sum()) / size
    return Difference(found.verdict, slot, found.expected / size, got)


def _only(gradient: torch.Tensor, element: int) -> torch.Tensor:
    """Return a gradient with one element, so that what is not finite elsewhere stays there."""
    made = torch.zeros(gradient.shape, dtype=torch.float64)
    made.view(-1)[element] = gradient.reshape(-1)[element]
    return made


# the whole Jacobian -----------------------------------------------------------------------------------------------------

Entry = tuple[int, list[int], int, float, float]


class _Outputs(Terms):
    """The elements of the results, as a function of the leaves."""

    def outputs(self, inputs: Sequence[torch.Tensor]) -> list[torch.Tensor]:
        """Return all elements of the results, complex ones as pairs."""
        made = [torch.view_as_complex(t.contiguous()) if c else t for t, c in zip(inputs, self.complex, strict=True)]
        with torch.no_grad():
            return [_flat(self.point.call(self.op, *(t.clone() for t in made)))]


def _flat(result: Any) -> torch.Tensor:
    parts = [as_real(y).reshape(-1) for y in floats(result)]
    return torch.cat([p.double() for p in parts]) if parts else torch.zeros(0, dtype=torch.float64)


def jacobian(
    point: Point, op: Callable[..., Any], *, eps: float | None = None, most: int | None = _MOST
) -> tuple[list[Entry], int, int]:
    """Compare every entry of the Jacobian.

    Args:
        point: where.
        op: the function.
        eps: the step; by default relative to each element.
        most: elements of one tensor that are looked at; None for all.

    Returns:
        The wrong entries (slot, index of the input element, output element, expected, got), how many were left out, and how
        many
        were compared.
    """
    outputs = _Outputs(point, op)
    leaves = point.leaves()
    y = _flat(point.call(op, *leaves))
    wanted = [leaves[i] for i in point.needed]
    rows = _elements(y.numel(), most)
    if not rows or not y.requires_grad or not bool(y.isfinite().all()):
        return [], 0, 0
    eye = torch.zeros(len(rows), y.numel(), dtype=torch.float64)
    eye[range(len(rows)), rows] = 1.0
    found = [torch.autograd.grad(y, wanted, e, retain_graph=True, allow_unused=True) for e in eye]
    wrong: list[Entry] = []
    left_out = compared_entries = 0
    for k, slot in enumerate(point.needed):
        size = outputs.inputs[slot].numel()
        given = torch.stack(
            [torch.zeros(size, dtype=torch.float64) if f[k] is None else as_real(f[k].detach()).reshape(-1) for f in found]
        )
        for element in _elements(size, most):
            column = _Column(outputs, slot, element, eps)
            suspicious, kinks = column.first(rows, given[:, element])
            left_out += kinks
            compared_entries += len(rows) - kinks
            for n in suspicious:
                verdict, expected, got = column.judged(rows[n], float(given[n, element]))
                if verdict == "match":
                    continue
                if verdict == "inconclusive" or not additive(outputs, point.needed, rows[n]):
                    left_out, compared_entries = left_out + 1, compared_entries - 1
                    continue
                shape = outputs.inputs[slot].shape
                index = [int(i) for i in torch.unravel_index(torch.tensor(element), shape)] if shape else []
                wrong.append((slot, index, rows[n], expected, got))
    return wrong, left_out, compared_entries


class _Column:
    """The differences of all outputs along one element, at several steps, each taken when it is first asked for."""

    def __init__(self, outputs: _Outputs, slot: int, element: int, eps: float | None) -> None:
        self.outputs, self.slot, self.element = outputs, slot, element
        self.size = float(outputs.inputs[slot].reshape(-1)[element].abs()) or 1.0 if eps is None else eps / STEP
        self.taken: dict[float, tuple[torch.Tensor, torch.Tensor]] = {}

    def at(self, scale: float) -> tuple[torch.Tensor, torch.Tensor]:
        """Return slopes and bends at a step."""
        if scale not in self.taken:
            h = STEP * self.size * scale
            step = torch.zeros_like(self.outputs.inputs[self.slot], memory_format=torch.contiguous_format)
            step.view(-1)[self.element] = h
            up, down = (
                self.outputs.outputs([x + sign * step if i == self.slot else x for i, x in enumerate(self.outputs.inputs)])[0]
                for sign in (1, -1)
            )
            self.taken[scale] = (up - down) / (2 * h), (up - 2 * self.outputs.here[0] + down).abs() / h
        return self.taken[scale]

    def first(self, rows: Sequence[int], got: torch.Tensor) -> tuple[list[int], int]:
        """Compare a whole column at the usual step: which entries are not plainly right, and how many are at kinks."""
        here = self.outputs.here[0]
        chosen = slice(None) if len(rows) == len(here) else list(rows)  # a list is copied by
        slope, bend, here = (*(found[chosen] for found in self.at(1.0)), here[chosen].abs())
        tolerance = RELATIVE * (got.abs() + slope.abs()) + ROUNDING * here / self.size
        error = (slope - got).abs()
        right = error <= tolerance
        if not bool(slope.isfinite().all() and bend.isfinite().all()):
            return [], len(rows)  # a slope that is infinite makes NaN of the zeros in other rows
        kink = ~right & ((error <= tolerance + bend) | ~slope.isfinite() | ~bend.isfinite())
        return (~right & ~kink).nonzero().reshape(-1).tolist(), int(kink.sum())

    def judged(self, row: int, got: float) -> tuple[str, float, float]:
        """Judge one entry: wrong only if it is so at several steps whose slopes agree."""
        size = abs(float(self.outputs.here[0][row]))
        slopes: list[float] = []
        for scale in (1.0, *_SCALES):
            slope, bend = (float(found[row]) for found in self.at(scale))
            tolerance = RELATIVE * (abs(got) + abs(slope)) + ROUNDING * size / self.size
            verdict = judged(slope, got, tolerance, bend)
            if verdict != "fault":
                return verdict, slope, got
            slopes.append(slope)
        certain = clear(slopes[0], slopes[1:], got)
        return "fault" if certain else "inconclusive", slopes[0], got
