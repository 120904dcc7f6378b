"""Where a call of a function parts from its reference first, and what its node is called."""

from collections.abc import Callable
from typing import Any

from gradcheck_plus.case import Call
from gradcheck_plus.divergence import Divergence
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.functions.judging import Tested, alone
from gradcheck_plus.functions.support import gradients
from gradcheck_plus.graph.diverging import divergence
from gradcheck_plus.graph.forward import line_of
from gradcheck_plus.graph.recording import Recording
from gradcheck_plus.graph.tracing import recorded
from gradcheck_plus.mismatch import Mismatch


def first_divergence(tested: Tested, call: Call, mismatch: Mismatch) -> Divergence:
    """Return where a call and the reference's part first; the function's own node where no use of its result shows that."""
    with alone():
        scene = tested.scene(call)
        mine = _recorded(scene.point, scene.op)
        theirs = None if scene.reference is None else _recorded(scene.point, scene.reference)
        found = divergence(theirs, mine) if theirs is not None and mine is not None else None
        return found or _own(tested, mine, mismatch)


def _recorded(point: Any, function: Callable[..., Any]) -> Recording | None:
    try:
        return recorded(lambda: gradients(point.run, function, point.leaves, point.times))
    except InvalidArgument:  # no backward is run: no output requires grad
        return None


def _own(tested: Tested, mine: Recording | None, mismatch: Mismatch) -> Divergence:
    node = next((node for node in mine or () if node.kind == "function"), None)
    source = (node.source if node else "") or ""
    return Divergence(node.name if node else tested.name, line_of(source), "backward", "rule-differs", source, mismatch.message)
