"""Two recordings side by side, from the first difference on."""

from collections.abc import Iterator, Sequence

import msgspec
import torch

from gradcheck_plus.divergence import Divergence
from gradcheck_plus.graph.comparing import Nearness, size, total
from gradcheck_plus.graph.diverging import Comparison
from gradcheck_plus.graph.forward import Call, Value
from gradcheck_plus.graph.node import Node
from gradcheck_plus.graph.recording import Recording
from gradcheck_plus.graph.showing import named
from gradcheck_plus.graph.structs import Gradient
from gradcheck_plus.graph.watching import figures


class Side(msgspec.Struct, frozen=True):
    """One value of both runs, in figures; None where a run has none.

    Attributes:
        what: what it is of the operation or node: what went into it or came out, what it received or returned.
        difference: how the two differ, empty where they do not: the largest difference of their elements, or what differs else.
    """

    what: str
    reference: Gradient | None
    subject: Gradient | None
    difference: str


class Pair(msgspec.Struct, frozen=True):
    """One operation or node of both runs.

    Attributes:
        reference, subject: its index among the nodes of each run; None where there is none, and for operations.
        name: what torch calls it.
        path, source: the module and the line that it comes from; empty where they are not known.
        backward: of an operation, the number of the backward that recomputes it; of a node, the one of the subject.
        sides: its values.
    """

    reference: int | None
    subject: int | None
    name: str
    path: str
    source: str
    backward: int | None
    sides: tuple[Side, ...]

    @property
    def differs(self) -> bool:
        """Is any value another one?"""
        return any(side.difference for side in self.sides)


class SideBySide(msgspec.Struct, frozen=True):
    """Two runs side by side.

    Attributes:
        divergence: where they part first, None where they do not.
        aligned: how many nodes of the reference the subject has too; with none, nothing was compared.
        operations: those that both run in a forward, or in one that is recomputed, and that give another value.
        nodes: all nodes in backward order, from the first on that receives or returns another gradient.
    """

    divergence: Divergence | None
    aligned: int
    operations: tuple[Pair, ...] = ()
    nodes: tuple[Pair, ...] = ()


def side_by_side(reference: Recording, subject: Recording) -> SideBySide:
    """Return two recordings of whole runs side by side, from where they part on."""
    comparison = Comparison(reference, subject)
    found, aligned = comparison.first(), len(comparison.nodes)
    if found is None:
        return SideBySide(None, aligned)
    operations: tuple[Pair, ...] = ()
    nodes: tuple[Pair, ...] = ()
    for nearness in comparison.levels:
        operations = tuple(_operations(comparison, nearness))
        nodes = _from_first(list(_nodes(comparison, nearness)))
        if operations or nodes:
            break
    return SideBySide(found, aligned, operations, nodes)


def _from_first(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """Return the pairs from the first on that differs, with what only one of the two ran just before."""
    first = next((place for place, pair in enumerate(pairs) if pair.differs), len(pairs))
    while 0 < first < len(pairs) and None in (pairs[first - 1].reference, pairs[first - 1].subject):
        first -= 1
    return tuple(pairs[first:])


def _operations(comparison: Comparison, nearness: Nearness) -> Iterator[Pair]:
    """Yield the operations that both run and that give another value, in the order of the subject."""
    for call in comparison.subject.calls:
        other = comparison.calls.get(call)
        if other is None:
            continue
        given = list(_sides("in", other.before, call.before, nearness))
        made = list(_sides("out", other.after, call.after, nearness))
        # One that overwrites memory which nobody wrote before is given other values and makes the same.
        if any(side.difference for side in made):
            yield Pair(None, None, _operation(other), call.path or "", other.source or "", call.backward, (*given, *made))


def _operation(call: Call) -> str:
    return call.name.removeprefix("aten.")


def _nodes(comparison: Comparison, nearness: Nearness) -> Iterator[Pair]:
    """Yield the nodes in the order of the reference, those that only the subject has before what they ran before."""
    theirs = comparison.subject.nodes
    leaves = {nodes[0].index: nodes for nodes, _ in comparison.leaf_groups()}
    waiting: list[Node] = []
    shown = 0
    for node in comparison.reference:
        others = comparison.nodes.get(node.index)
        if others is None:
            waiting.append(node)
            continue
        between = [other for other in theirs[shown : others[0]] if not comparison.known(other)]
        yield from _unaligned(waiting, between, nearness)
        waiting, shown = [], max(shown, others[0])
        same = leaves.get(node.index) if node.kind == "leaf" else [node]
        if same:  # a leaf that is sent several gradients is shown once, at the first
            yield _pair(same, [theirs[index] for index in others], nearness)
    yield from _unaligned(waiting, [other for other in theirs[shown:] if not comparison.known(other)], nearness)


def _unaligned(nodes: Sequence[Node], others: Sequence[Node], nearness: Nearness) -> Iterator[Pair]:
    """Yield what lies between two nodes that are aligned: nodes of one name side by side, in their order, the rest alone.

    So a reader finds side by side what no line and no module says to be the same, such as a loss of two functions.
    """
    left = list(others)
    for node in nodes:
        place = next((i for i, other in enumerate(left) if other.name == node.name), None)
        if place is None:
            yield _alone(node, of_reference=True)
            continue
        yield from (_alone(other) for other in left[:place])
        yield _pair([node], [left[place]], nearness)
        left = left[place + 1 :]
    yield from (_alone(other) for other in left)


def _pair(nodes: Sequence[Node], others: Sequence[Node], nearness: Nearness) -> Pair:
    node, other = nodes[0], others[0]
    sides = (
        _leaf(nodes, others, nearness)
        if node.kind == "leaf"
        else [*_both(node, other, "received", nearness), *_both(node, other, "returned", nearness)]
    )
    return Pair(node.index, other.index, named(node), node.path or "", node.source or "", other.backward, tuple(sides))


def _alone(node: Node, *, of_reference: bool = False) -> Pair:
    """Return a node that only one of the two has, as a checkpoint's own: that is no difference yet."""
    values = [("received", g) for g in node.received] + [("returned", g) for g in node.returned]
    sides = tuple(Side(what, g, None, "") if of_reference else Side(what, None, g, "") for what, g in values)
    here, there = (node.index, None) if of_reference else (None, node.index)
    return Pair(here, there, named(node), node.path or "", node.source or "", node.backward, sides)


def _both(node: Node, other: Node, side: str, nearness: Nearness) -> Iterator[Side]:
    wrong = set(nearness.gradients(node, other, side))
    these, those = getattr(node, side), getattr(other, side)
    values, others = (getattr(n, f"{side}_values") or () for n in (node, other))
    for slot, (a, b) in enumerate(zip(these, those, strict=False)):
        what = f"{side} {slot}" if len(these) > 1 else side
        pair = (values[slot], others[slot]) if slot < min(len(values), len(others)) else (None, None)
        yield Side(what, a, b, _difference(*pair) if slot in wrong else "")


def _leaf(nodes: Sequence[Node], others: Sequence[Node], nearness: Nearness) -> list[Side]:
    """Compare what a leaf is sent: in sum, where it is sent several gradients."""
    expected, got = total(nodes), total(others)
    scale = size(value for node in nodes for value in node.received_values or ())
    what = "received" if len(nodes) == len(others) == 1 else f"received, sum of {len(nodes)} and {len(others)}"
    equal = nearness.tensors(expected, got, scale)
    return [Side(what, _figures(expected), _figures(got), "" if equal else _difference(expected, got))]


def _sides(what: str, expected: Sequence[Value], got: Sequence[Value], nearness: Nearness) -> Iterator[Side]:
    for slot in range(max(len(expected), len(got))):
        a, b = (values[slot].tensor if slot < len(values) else None for values in (expected, got))
        name = f"{what} {slot}" if max(len(expected), len(got)) > 1 else what
        yield Side(name, _figures(a), _figures(b), "" if nearness.tensors(a, b) else _difference(a, b))


def _figures(tensor: torch.Tensor | None) -> Gradient | None:
    """Return a tensor of any dtype in figures."""
    if tensor is None or tensor.is_floating_point() or tensor.is_complex():
        return None if tensor is None else figures(tensor)
    return msgspec.structs.replace(figures(tensor.double()), dtype=str(tensor.dtype).removeprefix("torch."))


def _difference(expected: torch.Tensor | None, got: torch.Tensor | None) -> str:
    """Say how two tensors differ.

    Example:
        >>> _difference(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
        '0.5'
        >>> _difference(torch.ones(2), torch.ones(3)), _difference(torch.ones(2), None)
        ('shape', 'missing')
        >>> _difference(torch.tensor([1.0, float("nan")]), torch.ones(2))
        '1 not finite'
    """
    if expected is None or got is None:
        return "missing" if got is None else "unexpected"
    for what in ("shape", "dtype"):
        if getattr(expected, what) != getattr(got, what):
            return what
    a, b = (value.to_dense() if value.layout is not torch.strided else value for value in (expected, got))
    odd = int((a.isfinite() != b.isfinite()).sum())
    if odd:
        return f"{odd} not finite"
    wide = torch.complex128 if a.is_complex() else torch.float64
    apart = (a.to(wide) - b.to(wide)).abs()
    return f"{apart.where(apart.isfinite(), 0).amax().item():.3g}"
