"""Uses of the result."""

from collections.abc import Callable

from gradcheck_plus.functions.point import Point, Slot
from gradcheck_plus.functions.variations.variant import Variant


def _use(*lines: str) -> Callable[[Point, Slot, int], None]:
    def make(point: Point, _: Slot, choice: int) -> None:
        point.use = tuple(line.replace("CHOICE", str(choice % 4)) for line in lines)

    return make


def _in_place(point: Point, _: Slot, __: int) -> None:
    point.inplace = True  # a view of a leaf may not be changed, whoever made it
    point.use = ("return terms(doubled(y))",)


def _twice(point: Point, _: Slot, __: int) -> None:
    point.times = 2


TABLE = (
    Variant("summed-result", _use("return sums(y)")),
    Variant("averaged-result", _use("return sums(y) / 8")),
    Variant("transposed-result", _use("return terms(turned(y))")),
    Variant("stacked-result", _use("return terms(stacked(y))")),
    Variant("sliced-result", _use("return terms(sliced(y))")),
    Variant("row-summed-result", _use("return terms(row_sums(y))")),
    Variant("result-changed-in-place", _in_place),
    Variant("one-output-used", _use("found = floats(y)", "return terms(found[CHOICE % len(found)])")),
    Variant("two-calls", _use("z = CALL2", "return torch.cat([terms(y), terms(z)])")),
    Variant(
        "called-in-a-loop", _use("found = terms(y)", "for _ in range(2):", "    found = found + terms(CALL)", "return found")
    ),
    Variant("two-backwards", _twice),
)
