"""A recording as a table, and as a graph for networkx."""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gradcheck_plus.graph.node import Node
from gradcheck_plus.graph.structs import Gradients

if TYPE_CHECKING:
    import networkx

#: How many nodes ``print(recording)`` shows.
SHOWN = 100


def table(nodes: Sequence[Node]) -> Table:
    """Return nodes as a table, in their order; the line that they come from if it is known of any."""
    known = any(node.source for node in nodes)
    found = Table("", "node", "received", "returned", *(["from"] if known else []), box=None, pad_edge=False)
    for node in nodes:
        cells = [str(node.index), _named(node), _cell(node.received), _cell(node.returned)]
        found.add_row(*(Text(cell) for cell in [*cells, *([_place(node.source)] if known else [])]))
    return found


def as_text(nodes: Sequence[Node], rank: int | None) -> str:
    """Return the first nodes as plain text, as wide as it needs to be."""
    shown = nodes[:SHOWN]
    left = f", the first {SHOWN} of them" if len(shown) < len(nodes) else ""
    console = Console(file=io.StringIO(), width=200, color_system=None)
    console.print(table(shown))
    assert isinstance(console.file, io.StringIO)
    lines = [f"{len(nodes)} nodes in backward order{left}" + (f", rank {rank}" if rank is not None else "")]
    lines += [line.rstrip() for line in console.file.getvalue().splitlines()]
    if not any(node.source for node in shown):
        lines.append("source lines are not known: record the forward with gp.record_forward()")
    return "\n".join(lines)


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


def _named(node: Node) -> str:
    return f"{node.name} {node.leaf or '(not named)'}" if node.kind == "leaf" else node.name


def _cell(gradients: Gradients) -> str:
    return "\n".join("None" if gradient is None else str(gradient) for gradient in gradients)


def _place(source: str | None) -> str:
    return Path(source).name if source else ""
