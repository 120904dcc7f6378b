"""What else is done with the arguments."""

from gradcheck_plus.functions.point import Point, Slot
from gradcheck_plus.functions.variations.variant import Variant


def _needs_grad(slot: Slot) -> bool:
    return slot.floating and slot.grad


def _freeze(point: Point, slot: Slot, _: int) -> None:
    if sum(s.grad for s in point.slots) > 1:
        slot.grad = False


def _same(point: Point, slot: Slot, choice: int) -> None:
    others = [s for s in point.slots if s is not slot and _alike(s, slot)]
    if others:
        slot.same_as = others[choice % len(others)].argument.variable
        slot.grad = False


def _alike(a: Slot, b: Slot) -> bool:
    return a.value.shape == b.value.shape and a.value.dtype == b.value.dtype and not a.same_as and a.through == "{}"


def _used_elsewhere(_: Point, slot: Slot, __: int) -> None:
    slot.used_elsewhere = True


def _main_grad(_: Point, slot: Slot, choice: int) -> None:
    slot.main_grad = 1 + choice % 2
    if choice % 4 < 2:  # tied to an ordinary use, which adds whatever is returned beside it
        slot.main_grad = 1
        slot.used_elsewhere = True


def _producer(point: Point, slot: Slot, choice: int) -> None:
    if not any(slot.argument.variable == s.same_as for s in point.slots):
        slot.through = ("{}.exp()", "{}.sigmoid()", "{}.tanh()")[choice % 3]


TABLE = (
    Variant("frozen-argument", _freeze, fits=_needs_grad, suits=lambda p: sum(s.grad for s in p.slots) > 1),
    Variant(
        "same-tensor-twice",
        _same,
        fits=_needs_grad,
        suits=lambda p: len({(s.value.shape, s.value.dtype) for s in p.slots if s.grad}) < sum(s.grad for s in p.slots),
    ),
    Variant("used-elsewhere", _used_elsewhere, fits=_needs_grad),
    Variant("main-grad", _main_grad, fits=_needs_grad),
    Variant("producer-keeps-output", _producer, fits=lambda s: _needs_grad(s) and not s.same_as),
)
