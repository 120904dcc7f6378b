"""Cotangents: what the outputs receive, never only ones."""

from collections.abc import Sequence

from gradcheck_plus.case import Cotangent, Name, Segment, Spec, Value
from gradcheck_plus.case.point import Layout
from gradcheck_plus.case.trees import names, walk
from gradcheck_plus.strategies.chooser import Chooser

_LAYOUTS: tuple[Layout, ...] = ("transposed", "strided", "offset")


def cotangents(c: Chooser, segments: Sequence[Segment], specs: dict[str, Spec]) -> tuple[Cotangent, ...]:
    """Draw a cotangent for the outputs that the loss uses; shrinks towards a contiguous generic one for each.

    Every differentiable output is reached, by a cotangent of its own or through a later segment, unless an unreached one is
    drawn on purpose.
    """
    reached: set[str] = set()
    drawn: list[Cotangent] = []
    for index in reversed(range(len(segments))):
        later = {name for s in segments[index + 1 :] for name in names(*s.inputs)}
        for path, leaf in walk(segments[index].output):
            if not isinstance(leaf, Name) or not specs[leaf.name].requires_grad:
                continue
            used = leaf.name in later and leaf.name in reached
            if used and not c.flag("outer-use"):
                continue
            if drawn and c.flag("none-cotangent", 50):
                continue
            drawn.append(_cotangent(c, index, path, len(drawn)))
            reached.add(leaf.name)
        _flow(segments[index], reached)
    return tuple(drawn)


def _flow(segment: Segment, reached: set[str]) -> None:
    """Add the operands that a gradient comes back to."""
    for statement in reversed(segment.statements):
        if any(_is_reached(r, reached) for r in statement.results):
            pairs = zip(statement.operands, statement.specs, strict=True)
            reached |= {name for name, spec in pairs if spec.requires_grad}


def _is_reached(result: Value, reached: set[str]) -> bool:
    return result.name in reached and result.spec.requires_grad


def _cotangent(c: Chooser, segment: int, path: str, number: int) -> Cotangent:
    layout: Layout = "expanded" if c.flag("expanded-cotangent") else c.flagged("strided-cotangent", _LAYOUTS) or "contiguous"
    if number and c.flag("zero-cotangent", 40):
        return Cotangent(segment, path, number + 11, layout, "zero")
    if c.flag("one-hot-cotangent", 40):
        return Cotangent(segment, path, number + 11, layout, "one-hot")
    return Cotangent(segment, path, number + 11, layout)
