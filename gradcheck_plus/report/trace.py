"""What ``trace`` says of a backward: as text, and as data, whose JSON is `Trace`."""

from collections.abc import Sequence

import msgspec

from gradcheck_plus.graph.pairing import Pair, SideBySide
from gradcheck_plus.graph.showing import columns, lines, place
from gradcheck_plus.graph.structs import RecordedNode


class Trace(msgspec.Struct, frozen=True, kw_only=True):
    """One backward, or two side by side.

    Attributes:
        torch: the version that it was made with.
        rank: of this process in `torch.distributed`, None where that is not initialised.
        seed: what the random numbers were seeded with.
        target: what was called.
        total: how many nodes its backward has.
        nodes: those that were asked for. `leads_to` and `parent` are indices among all.
        remarks: where what is not finite came up first, in sentences.
        against: the reference, if there was one; else None.
        side_by_side: both runs, from where they part on, if there was one.
    """

    schema: int = 1
    exit_code: int
    torch: str
    rank: int | None
    seed: int
    target: str
    total: int
    nodes: tuple[RecordedNode, ...]
    remarks: tuple[str, ...] = ()
    against: str | None = None
    side_by_side: SideBySide | None = None


def trace_text(trace: Trace) -> str:
    """Return a trace as plain text, as wide as it needs to be."""
    if trace.side_by_side is not None:
        return "\n".join(_compared(trace, trace.side_by_side)) + "\n"
    return "\n".join([title(trace), *trace.remarks, *(lines(columns(trace.nodes)) if trace.nodes else [])]) + "\n"


def title(trace: Trace) -> str:
    """Say in a line what is shown."""
    shown = f"{len(trace.nodes)} of {trace.total} nodes" if len(trace.nodes) < trace.total else f"{trace.total} nodes"
    return f"{trace.target}: {shown} in backward order" + (f", rank {trace.rank}" if trace.rank is not None else "")


def _compared(trace: Trace, sides: SideBySide) -> list[str]:
    who = f"{trace.target} (subject) and {trace.against} (reference)"
    if sides.divergence is None:
        return [_agree(trace, sides, who)]
    said = [f"{who} part", str(sides.divergence)]
    if sides.divergence.source:
        said += [f"  {sides.divergence.source}: {sides.divergence.source_line}".rstrip(": ")]
    if sides.operations:
        said += ["", "operations of the forwards that differ", *lines(_columns(sides.operations, "operation"))]
    if sides.nodes:
        said += ["", "nodes in backward order, from the first that differs on", *lines(_columns(sides.nodes, "node"))]
    return said


def _agree(trace: Trace, sides: SideBySide, who: str) -> str:
    if not sides.aligned:
        return f"{who} have nothing in common: no operation of one is one of the other, and no leaf; nothing was compared"
    return f"{who} do not part: {sides.aligned} nodes and their operations were compared, and agree"


def _columns(pairs: Sequence[Pair], what: str) -> dict[str, list[str]]:
    """Return pairs as the columns of a table, by their heads; a line for each value."""
    found = {
        "ref": [_index(pair.reference) for pair in pairs],
        "subj": [_index(pair.subject) for pair in pairs],
        "backward": [_index(pair.backward) for pair in pairs],
        what: [pair.name for pair in pairs],
        "module": [pair.path for pair in pairs],
        "value": ["\n".join(side.what for side in pair.sides) for pair in pairs],
        "reference": ["\n".join(str(side.reference) for side in pair.sides) for pair in pairs],
        "subject": ["\n".join(str(side.subject) for side in pair.sides) for pair in pairs],
        "|difference|": ["\n".join(side.difference for side in pair.sides) for pair in pairs],
        "from": [place(pair.source) for pair in pairs],
    }
    said = {name: any(found[name]) for name in ("ref", "subj", "module", "from")}
    # Of nodes, all ran in the first backward unless one is told; of operations, one that is told is recomputed in it.
    said["backward"] = any(pair.backward for pair in pairs) or (what == "operation" and any(found["backward"]))
    return {name: cells for name, cells in found.items() if said.get(name, True)}


def _index(index: int | None) -> str:
    return "" if index is None else str(index)
