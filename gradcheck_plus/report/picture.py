"""A recorded backward as a picture: an SVG with one box for some nodes, from the loss at the top to the leaves."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib import resources

import jinja2
import networkx

from gradcheck_plus.graph.folding import Box, Folded, Link, fold
from gradcheck_plus.graph.showing import named
from gradcheck_plus.graph.structs import Gradients, RecordedNode

#: The size of what is drawn, in pixels.
_CHARACTER, _BOLD, _LINE, _PADDING, _GAP, _ROW, _MARGIN = 7, 8, 15, 8, 28, 40, 24
#: What a box shows of a name that is longer.
_LONGEST = 34
#: How many lines a tooltip has.
_TOLD = 24
#: How often each row is put in the order of its neighbours; the picture hardly changes after that.
_SWEEPS = 4

_NESTED = {"starts": "starts a backward within the backward", "ends": "the backward within the backward ends"}
_PLAIN, _LEAVES, _ODD, _DIFFERENT = "#eef2fa", "#eaf6ea", "#fbd5d5", "#fde3b8"


@dataclass(frozen=True)
class _Drawn:
    """A box as the template draws it."""

    lines: tuple[str, ...]
    told: str
    fill: str
    dashed: bool
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True)
class _Arrow:
    """A link as the template draws it."""

    path: str
    told: str
    colour: str
    dashed: bool


def picture(nodes: Sequence[RecordedNode], title: str, *, different: Collection[int] = ()) -> str:
    """Return an SVG of some nodes, folded by module.

    Red boxes hold a gradient that is not finite, green ones leaves only, dashed ones what ran in a nested backward. What a box
    has no room for is told where the pointer rests on it.

    Args:
        nodes: in backward order.
        title: what it is a picture of.
        different: the indices of nodes that differ from a reference; their boxes are orange.
    """
    folded = fold(nodes)
    places = _layout(folded, [_lines(box) for box in folded.boxes])
    drawn = [_drawn(box, place, different) for box, place in zip(folded.boxes, places, strict=True)]
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    template = (resources.files("gradcheck_plus.report") / "picture.svg.jinja").read_text(encoding="utf-8")
    return environment.from_string(template).render(
        title=title,
        boxes=drawn,
        arrows=[_arrow(link, drawn) for link in folded.links],
        width=max([_CHARACTER * len(title) + 2 * _MARGIN, *(box.x + box.width + 6 * _MARGIN for box in drawn)]),
        height=max([0, *(box.y + box.height for box in drawn)]) + _MARGIN,
        margin=_MARGIN,
    )


# what is said ---------------------------------------------------------------------------------------------------------


def _lines(box: Box) -> tuple[str, ...]:
    """Return what stands in a box."""
    node = box.nodes[0]
    if len(box.nodes) == 1:
        shown = node.leaf or (node.name if node.kind != "leaf" else "leaf (not named)")
        return tuple(map(_cut, (shown, *([box.first] if box.first and not node.leaf else []), str(node.received[0]))))
    span = " … ".join(dict.fromkeys(path or "(top level)" for path in (box.first, box.last)))
    most = ", ".join(f"{count} {name}" if count > 1 else name for name, count in box.counts)
    return tuple(map(_cut, (span, f"{len(box.nodes)} nodes, {node.index} to {box.nodes[-1].index}", most)))


def _told(box: Box) -> str:
    """Return what is told of a box where the pointer rests on it."""
    said = [
        f"{node.index} {named(node)}: {_shown(node.received)} → {_shown(node.returned)}"
        + (f" ({node.source})" if node.source else "")
        for node in box.nodes[:_TOLD]
    ]
    return "\n".join([*said, *([f"and {len(box.nodes) - _TOLD} more"] if len(box.nodes) > _TOLD else [])])


def _shown(gradients: Gradients) -> str:
    return ", ".join(map(str, gradients)) or "nothing"


def _cut(line: str) -> str:
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def _fill(box: Box, different: Collection[int]) -> str:
    if any(node.index in different for node in box.nodes):
        return _DIFFERENT
    if any(gradient is not None and gradient.nonfinite for node in box.nodes for gradient in (*node.received, *node.returned)):
        return _ODD
    return _LEAVES if all(node.kind == "leaf" for node in box.nodes) else _PLAIN


# where it stands ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Place:
    x: float
    y: float
    width: float
    height: float


def _layout(folded: Folded, lines: Sequence[Sequence[str]]) -> list[_Place]:
    """Return where each box stands: in rows, each below all boxes that lead to it, near those that it is linked to."""
    graph = networkx.DiGraph()
    graph.add_nodes_from(range(len(folded.boxes)))
    graph.add_edges_from((link.before, link.after) for link in folded.links)
    rows = _ordered([sorted(row) for row in networkx.topological_generations(graph)], graph)
    widths = [max(_BOLD * len(said[0]), *(_CHARACTER * len(line) for line in said)) + 2 * _PADDING for said in lines]
    heights = [_LINE * len(said) + _PADDING for said in lines]
    full = max((sum(widths[box] + _GAP for box in row) for row in rows), default=0)
    places: dict[int, _Place] = {}
    y = 40
    for row in rows:
        x = _MARGIN + (full - sum(widths[box] + _GAP for box in row)) / 2
        for box in row:
            places[box] = _Place(x, y, widths[box], heights[box])
            x += widths[box] + _GAP
        y += max(heights[box] for box in row) + _ROW
    return [places[box] for box in range(len(folded.boxes))]


def _ordered(rows: list[list[int]], graph: networkx.DiGraph) -> list[list[int]]:
    """Put each row in the order of the middle of its neighbours above, then below, and so on."""
    for sweep in range(_SWEEPS):
        middle = {box: (place + 0.5) / len(row) for row in rows for place, box in enumerate(row)}
        near = graph.predecessors if sweep % 2 == 0 else graph.successors
        rows = [sorted(row, key=lambda box: (_mean([middle[other] for other in near(box)], middle[box]), box)) for row in rows]
    return rows


def _mean(values: Sequence[float], default: float) -> float:
    return sum(values) / len(values) if values else default


def _drawn(box: Box, place: _Place, different: Collection[int]) -> _Drawn:
    nested = all(node.parent is not None for node in box.nodes)
    return _Drawn(_lines(box), _told(box), _fill(box, different), nested, place.x, place.y, place.width, place.height)


def _arrow(link: Link, boxes: Sequence[_Drawn]) -> _Arrow:
    """Draw a link down from box to box, or past those between on the right."""
    start, end = boxes[link.before], boxes[link.after]
    gap = end.y - start.y - start.height
    if gap <= _ROW + 3 * _LINE:
        x1, y1, x2, y2 = start.x + start.width / 2, start.y + start.height, end.x + end.width / 2, end.y
        path = f"M{x1:g},{y1:g} C{x1:g},{y1 + gap / 2:g} {x2:g},{y2 - gap / 2:g} {x2:g},{y2:g}"
    else:
        x1, y1, x2, y2 = start.x + start.width, start.y + start.height / 2, end.x + end.width, end.y + end.height / 2
        out = max(x1, x2) + min(20 + gap / 6, 5 * _MARGIN)
        path = f"M{x1:g},{y1:g} C{out:g},{y1:g} {out:g},{y2:g} {x2:g},{y2:g}"
    odd = any(gradient is not None and gradient.nonfinite for gradient in link.gradients)
    told = _NESTED.get(link.kind) or "\n".join(map(str, link.gradients[:_TOLD]))
    return _Arrow(path, told, "#c33" if odd else "#667", link.kind in _NESTED)
