"""Other sizes: equal sizes of all tensors together, or one dimension of one tensor alone."""

from collections.abc import Callable

import torch

from gradcheck_plus.functions.point import Point, Slot
from gradcheck_plus.functions.variations.variant import Variant

#: Elements that a tensor is let grow to: differences are taken element by element.
_MOST = 512


def resized(value: torch.Tensor, dim: int, size: int) -> torch.Tensor:
    """Return a tensor with another size along a dimension: cut off, or repeated with other values."""
    old = value.shape[dim]
    if not old:
        shape = [size if d == dim else n for d, n in enumerate(value.shape)]
        return torch.ones(shape, dtype=value.dtype, device=value.device)
    i = torch.arange(size, device=value.device)
    found = value.index_select(dim, i % old)
    if not (value.is_floating_point() or value.is_complex()):
        return found
    scale = (1 - (i // old) / 8).reshape([-1 if d == dim else 1 for d in range(value.dim())])
    return found * scale.to(value.dtype)


def _resize(point: Point, slot: Slot, choice: int, size_of: Callable[[int], int]) -> None:
    dims = slot.value.dim()
    dim, alone = choice % dims, choice // dims % 2 == 1
    old = slot.value.shape[dim]
    size = size_of(old)
    for s in [slot] if alone else point.slots:
        for d, n in enumerate(s.value.shape):
            if (s is slot and d == dim) or (not alone and n == old):
                made = resized(s.value, d, size)
                if made.numel() <= _MOST or made.numel() < s.value.numel():
                    s.value = made


def _to(*sizes: Callable[[int], int]) -> Callable[[Point, Slot, int], None]:
    def make(point: Point, slot: Slot, choice: int) -> None:
        size = sizes[choice // (2 * slot.value.dim()) % len(sizes)]
        _resize(point, slot, choice, size)

    return make


def _has_dimensions(slot: Slot) -> bool:
    return slot.value.dim() > 0


TABLE = (
    Variant("other-size", _to(lambda n: 2 * n, lambda n: n + 1, lambda n: max(n - 1, 1), lambda _: 3), fits=_has_dimensions),
    Variant("size-one", _to(lambda _: 1), fits=_has_dimensions),
    Variant("size-zero", _to(lambda _: 0), fits=_has_dimensions),
)
