"""A recording as a table, and as a graph for networkx."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch
from rich.table import Table
from rich.text import Text

from gradcheck_plus.graph.forward import line_of
from gradcheck_plus.graph.node import Node
from gradcheck_plus.graph.structs import Gradient, Gradients, RecordedNode

if TYPE_CHECKING:
    import networkx

#: How many nodes ``print(recording)`` shows.
SHOWN = 100

Nodes = Sequence[Node] | Sequence[RecordedNode]


def columns(nodes: Nodes) -> dict[str, list[str]]:
    """Return nodes as the columns of a table, by their heads; a cell may have several lines.

    Which backward a node ran in, its module and its line are left out where there is but one, or none is known.
    """
    found = {
        "": [str(node.index) for node in nodes],
        "backward": [_backward(node) for node in nodes],
        "node": [named(node) for node in nodes],
        "module": [node.path or "" for node in nodes],
        "received": [_cell(node.received) for node in nodes],
        "returned": [_cell(node.returned) for node in nodes],
        "from": [place(node.source) for node in nodes],
    }
    said = {"backward": any(node.backward for node in nodes), **{name: any(found[name]) for name in ("module", "from")}}
    return {name: cells for name, cells in found.items() if said.get(name, True)}


def lines(table: dict[str, list[str]]) -> list[str]:
    r"""Return columns as lines of plain text, as wide as they need to be.

    rich takes many times as long for it, which is felt with ten thousand nodes.

    Example:
        >>> lines({"": ["0", "1"], "node": ["SumBackward0", "MulBackward0"], "returned": ["None", "None\nNone"]})
        ['   node          returned', '0  SumBackward0  None', '1  MulBackward0  None', '                 None']
    """
    split = [[[head], *(cell.split("\n") for cell in cells)] for head, cells in table.items()]
    widths = [max(len(line) for cell in column for line in cell) for column in split]
    found = []
    for row in zip(*split, strict=True):
        for line in range(max(map(len, row))):
            parts = (cell[line] if line < len(cell) else "" for cell in row)
            found.append("  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True)).rstrip())
    return found


def table(nodes: Nodes) -> Table:
    """Return nodes as a table for `rich`."""
    shown = columns(nodes)
    found = Table(*shown, box=None, pad_edge=False)
    for row in zip(*shown.values(), strict=True):
        found.add_row(*map(Text, row))
    return found


def as_text(nodes: Nodes, rank: int | None) -> str:
    """Return the first nodes as plain text."""
    shown = nodes[:SHOWN]
    left = f", the first {SHOWN} of them" if len(shown) < len(nodes) else ""
    said = [f"{len(nodes)} nodes in backward order{left}" + (f", rank {rank}" if rank is not None else "")]
    said += lines(columns(shown))
    if not any(node.source for node in shown):
        said.append("source lines are not known: record the forward with gp.record_forward()")
    return "\n".join(said)


def to_networkx(nodes: Sequence[Node]) -> "networkx.MultiDiGraph":
    """Return nodes as a directed graph: an edge for each gradient that was due."""
    import networkx

    graph = networkx.MultiDiGraph()
    for node in nodes:
        graph.add_node(node.index, **msgspec.structs.asdict(node.data()))
    for node in nodes:
        for slot, (after, gradient) in enumerate(zip(node.leads_to, node.returned, strict=False)):
            if after is not None:
                graph.add_edge(node.index, after, slot=slot, gradient=gradient)
    return graph


def remarks(nodes: Sequence[Node]) -> list[str]:
    """Say where what is not finite came up first, in the backward and in the forward; nothing where all is finite."""
    found = next((said for node in nodes if (said := _odd(node))), None)
    return [found, *_first_in_forward(nodes)] if found else []


def _first_in_forward(nodes: Sequence[Node]) -> list[str]:
    """Say which operation gives NaN of what has none; if none does, which gives an infinity, which masks may mean to."""
    for what, test in (("NaN", torch.isnan), ("an infinity", torch.isinf)):
        first = next((node for node in sorted(nodes, key=lambda node: node.made) if _makes(node, test)), None)
        if first is not None:
            return [f"{what} first in the forward: {_operation(first)} gives it{_where(first)}"]
    return []


def _odd(node: Node) -> str:
    for side, gradients in (("received", node.received), ("returned", node.returned)):
        if odd := nonfinite(gradients):
            shown = ", ".join(map(str, odd))
            return f"not finite first in the backward: what node {node.index}, {named(node)}, {side}{_where(node)}: {shown}"
    return ""


def _operation(node: Node) -> str:
    return (node.operation or "").removeprefix("aten.").partition(".")[0] if node.kind == "torch" else node.operation or ""


def _makes(node: Node, test: Callable[[torch.Tensor], torch.Tensor]) -> bool:
    """Did what made a node give values that pass a test though it was given none?"""
    call = node.call
    if call is None or any(bool(test(value.tensor).any()) for value in call.before):
        return False
    return any(bool(test(value.tensor).any()) for value in call.after)


def _where(node: Node) -> str:
    said = ", ".join(part for part in (f"module {node.path!r}" if node.path else "", place(node.source)) if part)
    return f" ({said})" if said else ""


def nonfinite(gradients: Gradients) -> list[Gradient]:
    """Return those gradients that are not finite."""
    return [gradient for gradient in gradients if gradient is not None and gradient.nonfinite]


def named(node: Node | RecordedNode) -> str:
    """Return the name of a node, with that of its leaf."""
    return f"{node.name} {node.leaf or '(not named)'}" if node.kind == "leaf" else node.name


def place(source: str | None) -> str:
    """Return the file, the number and the text of a line, for a table."""
    path, _, number = (source or "").rpartition(":")
    return f"{Path(path).name}:{number} {line_of(source or '')}".rstrip() if path else ""


def _backward(node: Node | RecordedNode) -> str:
    return str(node.backward) + (f" in {node.parent}" if node.parent is not None else "")


def _cell(gradients: Iterable[object]) -> str:
    return "\n".join(map(str, gradients))
