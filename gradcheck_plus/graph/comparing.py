"""Are two values the same, or near enough that only the order of a sum may have changed?"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import starmap

import torch

from gradcheck_plus.graph.node import Node
from gradcheck_plus.graph.structs import Gradient

#: How many units in the last place of the largest element values may be apart that are near.
_UNITS = 64

#: Gradients this much smaller than the largest one of a run may be nothing but what rounding left of zero.
_SMALL = 1e-7


@dataclass(frozen=True)
class Nearness:
    """What counts as the same.

    Attributes:
        exact: only what has the same bits.
        floor: how large a value is in this run at most: of one that should be zero, rounding may leave a part of this.
    """

    exact: bool
    floor: float = 0.0

    def tensors(self, expected: torch.Tensor | None, got: torch.Tensor | None, scale: float = 0.0) -> bool:
        """Are two tensors near? `scale` is the size of what they come from."""
        if expected is None or got is None:
            return expected is got
        if (expected.shape, expected.dtype) != (got.shape, got.dtype):
            return False
        if expected.layout is not torch.strided or got.layout is not torch.strided:
            expected, got = expected.to_dense(), got.to_dense()
        if torch.equal(expected, got):
            return True
        if self.exact or not expected.dtype.is_floating_point:
            return bool(expected.isclose(got, rtol=0, atol=0, equal_nan=True).all())
        wide, other = expected.double(), got.double()
        if not torch.equal(wide.isfinite(), other.isfinite()):
            return False
        allowed = _UNITS * torch.finfo(expected.dtype).eps * max(size([expected]), scale, _SMALL * self.floor)
        return bool(wide.isclose(other, rtol=0, atol=allowed, equal_nan=True).all())

    def gradients(self, expected: Node, got: Node, side: str) -> list[int]:
        """Return which of the gradients that two nodes ``received`` or ``returned`` are not near, of those that were due."""
        these, those = _values(expected, side), _values(got, side)
        near: Iterable[bool]
        if these is None or those is None:
            near = starmap(_alike, zip(getattr(expected, side), getattr(got, side), strict=False))
        else:
            scale = max(size(these), size(_values(expected, "received") or ()))
            near = (self.tensors(a, b, scale) for a, b in zip(these, those, strict=False))
        wrong = [slot for slot, is_near in enumerate(near) if not is_near]
        return [slot for slot in wrong if side == "received" or not _left_out(got, slot)]


def _values(node: Node, side: str) -> Sequence[torch.Tensor | None] | None:
    return node.received_values if side == "received" else node.returned_values


def _left_out(node: Node, slot: int) -> bool:
    """Is a gradient not there because this backward was asked for those of other inputs only?"""
    return node.returned[slot] is None and node.leads_to[slot] is None


def total(nodes: Sequence[Node]) -> torch.Tensor | None:
    """Return what some leaves were sent, in sum; None if that is nothing."""
    values = [value for node in nodes for value in (node.received_values or ())[:1] if value is not None]
    return sum(values[1:], values[0]) if values else None


def _alike(expected: Gradient | None, got: Gradient | None) -> bool:
    """Are two gradients alike of which only figures were kept?"""
    if expected is None or got is None:
        return expected is got
    if (expected.shape, expected.dtype, expected.nonfinite) != (got.shape, got.dtype, got.nonfinite):
        return False
    norms = (expected.norm or 0.0, got.norm or 0.0)
    return abs(norms[0] - norms[1]) <= _UNITS * torch.finfo(getattr(torch, expected.dtype)).eps * max(norms)


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Have two tensors the same dtype, shape and elements?"""
    return a.dtype == b.dtype and a.shape == b.shape and torch.equal(a, b)


def size(values: Iterable[torch.Tensor | None]) -> float:
    """Return the largest finite magnitude among some tensors, 0 for none."""
    largest = 0.0
    for value in values:
        if value is not None and value.numel() and (value.is_floating_point() or value.is_complex()):
            elements = (value.to_dense() if value.layout is not torch.strided else value).abs().double()
            largest = max(largest, elements.where(elements.isfinite(), 0).max().item())
    return largest


def described(expected: torch.Tensor | None, got: torch.Tensor | None) -> str:
    """Say how two tensors differ, shortly.

    Example:
        >>> described(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 4.0]))
        'expected [1, 2], got [1, 4]'
        >>> described(torch.ones(9), 2 * torch.ones(9))
        'twice what is expected'
        >>> described(torch.ones(9), None)
        'expected float32[9], got None'
    """
    if expected is None or got is None or (expected.shape, expected.dtype) != (got.shape, got.dtype):
        return f"expected {_shown(expected)}, got {_shown(got)}"
    if expected.layout is not torch.strided or got.layout is not torch.strided:
        expected, got = expected.to_dense(), got.to_dense()
    if expected.numel() <= 4:
        return f"expected {_elements(expected)}, got {_elements(got)}"
    for factor, words in ((2, "twice what is expected"), (0.5, "half of what is expected"), (0, "zeros")):
        if torch.equal(got, expected * factor):
            return words
    apart = (got.double() - expected.double()).abs() if expected.dtype.is_floating_point else (got != expected)
    largest = apart.where(apart.isfinite(), torch.inf).max().item() if expected.dtype.is_floating_point else 1
    return f"apart by up to {largest:.3g}, where the largest expected is {size([expected]):.3g}"


def _shown(tensor: torch.Tensor | None) -> str:
    return "None" if tensor is None else f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _elements(tensor: torch.Tensor) -> str:
    def text(value: object) -> str:
        if isinstance(value, list):
            return f"[{', '.join(map(text, value))}]"
        return f"{value:.6g}" if isinstance(value, float) else str(value)

    return text(tensor.tolist())
