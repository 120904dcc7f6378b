"""Other values."""

from collections.abc import Callable

import torch

from gradcheck_plus.functions.point import Point, Slot
from gradcheck_plus.functions.variations.variant import Variant


def _factor(*factors: float) -> Callable[[Point, Slot, int], None]:
    def make(_: Point, slot: Slot, choice: int) -> None:
        slot.value = slot.value * factors[choice % len(factors)]

    return make


def _negative(_: Point, slot: Slot, choice: int) -> None:
    slot.value = -slot.value.abs() if choice % 2 == 0 else -slot.value


def _zeros(_: Point, slot: Slot, choice: int) -> None:
    every = (0, 2, 1)[choice % 3]  # one element, every second, all
    value = slot.value.clone().reshape(-1)
    if every == 0:
        value[choice % max(len(value), 1) : choice % max(len(value), 1) + 1] = 0
    else:
        value[::every] = 0
    slot.value = value.reshape(slot.value.shape)


def _ties(_: Point, slot: Slot, choice: int) -> None:
    v = slot.value.clone()
    form = choice % 3
    if form == 0 and v.dim():  # neighbours along the last dimension
        v[..., 1::2] = v[..., : v.shape[-1] - v.shape[-1] % 2 : 2]
    elif form == 1 and v.dim():  # equal rows
        v[:] = v[:1].clone()
    else:
        v = v.reshape(-1)[:1].expand(v.numel()).reshape(v.shape).clone() if v.numel() else v
    slot.value = v


#: Where functions that are defined in pieces have their seams: relu, relu6, hardtanh, hardsigmoid, hardswish, smooth L1.
_SEAMS = (0.0, 1.0, -1.0, 0.5, 2.0, -0.5, 3.0, -3.0, 6.0, -2.0)


def _whole(_: Point, slot: Slot, choice: int) -> None:
    if choice % 2 == 0:
        slot.value = (slot.value * 2).real.round().to(slot.value.dtype)
        return
    seams = torch.tensor(_SEAMS, dtype=slot.value.dtype, device=slot.value.device)
    n = torch.arange(slot.value.numel(), device=slot.value.device) + choice // 2
    slot.value = seams[n % len(_SEAMS)].reshape(slot.value.shape)


def _non_finite(_: Point, slot: Slot, choice: int) -> None:
    value = slot.value.clone().reshape(-1)
    what = (float("-inf"), float("inf"), float("nan"))[choice % 3]
    if choice % 2 and slot.value.dim():
        value = slot.value.clone()
        value[..., -1] = what
    elif len(value):
        value[choice // 3 % len(value)] = what
    slot.value = value.reshape(slot.value.shape)


def _other(_: Point, __: Slot, ___: int) -> None:
    """The sample itself was made with other random numbers."""


def _is_index(slot: Slot) -> bool:
    return not slot.floating and slot.value.dtype != torch.bool and slot.value.numel() > 0


def _border(_: Point, slot: Slot, choice: int) -> None:
    edge = slot.value.max() if choice % 2 == 0 else slot.value.min()
    slot.value = edge.expand(slot.value.shape).clone()


def _repeated(_: Point, slot: Slot, choice: int) -> None:
    flat = slot.value.reshape(-1)
    slot.value = flat[choice % len(flat)].expand(slot.value.shape).clone()


def _uniform(_: Point, slot: Slot, choice: int) -> None:
    slot.value = torch.full_like(slot.value, fill_value=choice % 2 == 0)


TABLE = (
    Variant("other-sample", _other),
    Variant("larger-values", _factor(3.0, 10.0, 1e2, 1e4)),
    Variant("tiny-values", _factor(1e-2, 1e-4, 1e-8)),
    Variant("negative-values", _negative),
    Variant("integer-values", _whole),
    Variant("tied-values", _ties, fits=lambda s: s.floating and s.value.numel() > 1),
    Variant("zero-values", _zeros),
    Variant("beyond-float16", _factor(1e5, 1e6)),
    Variant("non-finite-values", _non_finite),
    Variant("border-indices", _border, fits=_is_index),
    Variant("repeated-indices", _repeated, fits=_is_index),
    Variant("uniform-mask", _uniform, fits=lambda s: s.value.dtype == torch.bool),
)
