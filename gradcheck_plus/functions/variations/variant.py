"""What a variation is, and the table of them."""

from collections.abc import Callable
from dataclasses import dataclass

from gradcheck_plus.functions.point import Point, Slot
from gradcheck_plus.registry import Registry


@dataclass(frozen=True)
class Variant:
    """One way to vary a call.

    Attributes:
        name: the name of its trait.
        make: changes a point; is given one of the slots that fit, and a number that chooses among its forms.
        fits: can it be done to this tensor?
        suits: does it mean something for this call?
    """

    name: str
    make: Callable[[Point, Slot, int], None]
    fits: Callable[[Slot], bool] = lambda slot: slot.floating
    suits: Callable[[Point], bool] = lambda _: True


VARIANTS: Registry[Variant] = Registry("variation")
