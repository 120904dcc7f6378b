"""Other layouts of arguments in memory."""

from collections.abc import Callable

from gradcheck_plus.functions.point import Point, Slot
from gradcheck_plus.functions.variations.variant import Variant


def _layout(name: str) -> Callable[[Point, Slot, int], None]:
    def make(_: Point, slot: Slot, __: int) -> None:
        slot.layout = name

    return make


def _expanded(_: Point, slot: Slot, __: int) -> None:
    slot.layout = "expanded"
    slot.value = slot.value[:1].expand(slot.value.shape).clone()


TABLE = (
    Variant("transposed-argument", _layout("transposed"), fits=lambda s: s.value.dim() > 1),
    Variant("strided-argument", _layout("strided"), fits=lambda s: s.value.dim() > 0),
    Variant("offset-argument", _layout("offset")),
    Variant("expanded-argument", _expanded, fits=lambda s: s.floating and s.value.dim() > 0),
)
