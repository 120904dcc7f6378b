"""Variations: the ways in which a call differs from the sample call. One table, one file a theme.

To add one, add an entry to a file, and its phrase to `gradcheck_plus.traits.calls`.
"""

from collections.abc import Callable
from typing import Any

from gradcheck_plus.case import Call, Variation
from gradcheck_plus.functions.point import Point, Slot, plain_point
from gradcheck_plus.functions.variations import dtypes, layouts, shapes, surroundings, uses, values
from gradcheck_plus.functions.variations.variant import VARIANTS, Variant
from gradcheck_plus.traits.calls import PHRASES

__all__ = ["THEMES", "VARIANTS", "Variant", "offered", "phrases", "varied"]

#: The names of the variations of each theme.
THEMES: dict[str, tuple[str, ...]] = {}
for _theme in (values, shapes, dtypes, layouts, surroundings, uses):
    THEMES[_theme.__name__.rpartition(".")[2]] = tuple(VARIANTS.add(variant).name for variant in _theme.TABLE)


def _candidates(point: Point, variant: Variant) -> list[Slot]:
    return [slot for slot in point.slots if variant.fits(slot)]


def offered(point: Point) -> tuple[str, ...]:
    """Return the names of the variations that can be made of a sample call."""
    return tuple(v.name for v in VARIANTS.values() if _candidates(point, v) and v.suits(point))


def varied(call: Call, sample_of: Callable[[int], Any], *, double: bool, inplace: bool) -> Point:
    """Return the point at which a case calls the function.

    Args:
        call: the case.
        sample_of: makes the sample call with other random numbers.
        double: the function takes float64.
        inplace: the function writes into its arguments.
    """
    number = next((v.choice + 1 for v in call.variations if v.name == "other-sample"), 0)
    point = plain_point(sample_of(number), double=double, inplace=inplace)
    point.names = call.names
    order = {name: n for n, name in enumerate(VARIANTS)}
    for variation in sorted(call.variations, key=lambda v: order[v.name]):
        variant = VARIANTS[variation.name]
        candidates = _candidates(point, variant)
        if candidates:
            variant.make(point, candidates[variation.slot % len(candidates)], variation.choice)
    return point


def phrases(call: Call, sample: Any) -> str:
    """Return what is different from the sample call, in words, with the names of arguments."""
    said = [_phrase(v, plain_point(sample, double=False)) for v in call.variations]
    return " and ".join(dict.fromkeys(said))


def _phrase(variation: Variation, point: Point) -> str:
    candidates = _candidates(point, VARIANTS[variation.name])
    name = candidates[variation.slot % len(candidates)].argument.name if candidates else "an argument"
    return PHRASES[variation.name][0].format(x=f"`{name}`")
