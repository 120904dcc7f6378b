"""Other dtypes."""

from collections.abc import Callable

import torch

from gradcheck_plus.functions.point import Point, Slot
from gradcheck_plus.functions.variations.variant import Variant


def _all_to(dtype: torch.dtype) -> Callable[[Point, Slot, int], None]:
    def make(point: Point, _: Slot, __: int) -> None:
        for slot in point.slots:
            if slot.value.is_floating_point():
                slot.value = slot.value.to(dtype)

    return make


def _complex(point: Point, _: Slot, __: int) -> None:
    for slot in point.slots:
        if slot.value.dtype == torch.float64:
            slot.value = torch.complex(slot.value, (slot.value.reshape(-1).flip(0) / 2).reshape(slot.value.shape))


def _autocast(point: Point, slot: Slot, choice: int) -> None:
    _all_to(torch.float32)(point, slot, choice)
    point.autocast = "bfloat16"


TABLE = (
    Variant("float32-inputs", _all_to(torch.float32)),
    Variant("low-precision-inputs", _all_to(torch.bfloat16)),
    Variant("complex-inputs", _complex),
    Variant("under-autocast", _autocast),
)
