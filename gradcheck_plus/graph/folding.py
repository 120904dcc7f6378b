"""A graph of thousands of nodes, folded into as many boxes as fit in a picture."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise, takewhile
from typing import Literal

import msgspec

from gradcheck_plus.graph.structs import Gradient, RecordedNode

#: How many boxes a picture has at most.
MOST = 60
#: With fewer boxes than this a picture says too little; neighbours of the next depth are joined instead.
_FEWEST = 8


class Box(msgspec.Struct, frozen=True):
    """Some nodes that ran one after another.

    Attributes:
        nodes: the nodes, in backward order.
        first: the innermost module that all of them were made in; where neighbours were joined, that of the first.
        last: that of the last.
        backward: the number of the backward that the first ran in.
    """

    nodes: tuple[RecordedNode, ...]
    first: str
    last: str
    backward: int

    @property
    def counts(self) -> tuple[tuple[str, int], ...]:
        """How many nodes of each name, the most frequent first and those of leaves last."""
        counted = Counter(node.name for node in self.nodes if node.kind != "leaf").most_common()
        leaves = sum(node.kind == "leaf" for node in self.nodes)
        return (*counted, *([("AccumulateGrad", leaves)] if leaves else []))


class Link(msgspec.Struct, frozen=True):
    """What goes from one box to another one.

    Attributes:
        before, after: the numbers of the boxes.
        gradients: those that are handed on.
        kind: are gradients handed on; or does `before` send to a node that starts a backward, which begins in `after`; or does
            such a backward end in `before`, while `after` has the node that started it?
    """

    before: int
    after: int
    gradients: tuple[Gradient | None, ...]
    kind: Literal["gradients", "starts", "ends"] = "gradients"


class Folded(msgspec.Struct, frozen=True):
    """A folded graph. Every link leads to a later box, so that there are no cycles."""

    boxes: tuple[Box, ...]
    links: tuple[Link, ...]


def fold(nodes: Sequence[RecordedNode], most: int = MOST) -> Folded:
    """Fold nodes that ran one after another in one module into a box, as deep into the modules as there is room.

    A module that is called twice is two boxes. Where the modules of one depth are too few to show anything and those of the
    next too many, neighbours of the next are joined.

    Args:
        nodes: in backward order; perhaps only some of those that ran.
        most: how many boxes there are at most.

    Example:
        >>> def node(index, path, *after):
        ...     return RecordedNode(
        ...         index=index, name="AddBackward0", kind="torch", received=(None,), returned=(None,) * len(after), leaf=None,
        ...         operation=None, path=path, source=None, saved={}, hooks=(), leads_to=after, backward=0, parent=None,
        ...     )
        >>> chain = [node(0, "", 1), node(1, "layer.1", 2), node(2, "layer.0", 3), node(3, "layer.0")]
        >>> [(box.first, len(box.nodes)) for box in fold(chain, most=3).boxes]
        [('', 1), ('layer.1', 1), ('layer.0', 2)]
        >>> [(link.before, link.after) for link in fold(chain, most=3).links]
        [(0, 1), (1, 2)]
    """
    boxes = tuple(_boxes(nodes, most))
    return Folded(boxes, tuple(_links(boxes)))


def modules(nodes: Sequence[RecordedNode]) -> list[str]:
    """Return the module of every node: its own, or that of the first node which sends to it; empty for none."""
    found: dict[int, str] = {}
    for node in nodes:
        path = node.path if node.path is not None else found.get(node.index, "")
        found[node.index] = path
        for after in node.leads_to:
            if after is not None:
                found.setdefault(after, path)
    return [found[node.index] for node in nodes]


def _boxes(nodes: Sequence[RecordedNode], most: int) -> Iterator[Box]:
    owners = modules(nodes)
    parts = [(node.backward, *_parts(owner)) for node, owner in zip(nodes, owners, strict=True)]
    for run in _runs(parts, most):
        places = [place for group in run for place in group]
        first, last = (_common([owners[place] for place in group]) for group in (run[0], run[-1]))
        yield Box(tuple(nodes[place] for place in places), first, last, nodes[places[0]].backward)


def _runs(parts: Sequence[tuple[object, ...]], most: int) -> list[list[range]]:
    """Return the places of the nodes of each box: one group of neighbours, or several that are joined."""
    chosen: list[range] = []
    few = min(_FEWEST, most)
    for depth in range(1, max(map(len, parts), default=0) + 1):
        groups = _neighbours([part[:depth] for part in parts])
        if len(groups) > most:
            return _joined(chosen if len(chosen) >= few else groups, most)
        chosen = groups
    alone = [range(place, place + 1) for place in range(len(parts))]
    return _joined(chosen if len(chosen) >= few and len(alone) > most else alone, most)


def _neighbours(keys: Sequence[object]) -> list[range]:
    """Return the runs of equal keys."""
    ends = [place for place in range(1, len(keys)) if keys[place] != keys[place - 1]]
    return [range(start, end) for start, end in pairwise([0, *ends, len(keys)])]


def _joined(groups: list[range], most: int) -> list[list[range]]:
    size = -(-len(groups) // most) or 1
    return [groups[start : start + size] for start in range(0, len(groups), size)]


def _parts(path: str) -> tuple[str, ...]:
    return tuple(path.split(".")) if path else ()


def _common(paths: Sequence[str]) -> str:
    """Return the innermost module that has all of some in it."""
    found: tuple[str, ...] = _parts(paths[0])
    for path in paths[1:]:
        same = (a == b for a, b in zip(found, _parts(path), strict=False))
        found = found[: sum(takewhile(bool, same))]
    return ".".join(found)


def _links(boxes: Sequence[Box]) -> Iterator[Link]:
    """Yield one link for each pair of boxes between which gradients go, and those into and out of each nested backward."""
    home = {node.index: number for number, box in enumerate(boxes) for node in box.nodes}
    handed: dict[tuple[int, int], list[Gradient | None]] = {}
    senders: dict[int, list[int]] = {}
    nested: dict[tuple[int, int], list[int]] = {}
    for number, box in enumerate(boxes):
        for node in box.nodes:
            for after, gradient in zip(node.leads_to, node.returned, strict=False):
                if after in home and home[after] != number:
                    handed.setdefault((number, home[after]), []).append(gradient)
                    senders.setdefault(after, []).append(number)
            if node.parent in home:
                nested.setdefault((node.backward, node.parent), []).append(number)
    yield from (Link(before, after, tuple(gradients)) for (before, after), gradients in handed.items())
    for (_, parent), inside in nested.items():
        starts = {before for before in senders.get(parent, ()) if before < inside[0]}
        yield from (Link(before, inside[0], (), "starts") for before in sorted(starts))
        if inside[-1] != home[parent]:
            yield Link(inside[-1], home[parent], (), "ends")
