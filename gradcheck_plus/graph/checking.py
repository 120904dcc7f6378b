"""The local check: one node's rule against central differences of its forward, both run again in float64."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

import torch

from gradcheck_plus.compat import tensors
from gradcheck_plus.graph.differences import Difference, differences
from gradcheck_plus.graph.redoing import Point, Unredoable, devices, redo
from gradcheck_plus.graph.structs import NodeCheck

if TYPE_CHECKING:
    from gradcheck_plus.graph.node import Node


Judgement = tuple[Literal["match", "fault", "inconclusive"], str]

#: How far two gradients may be apart that a kernel summed in another order, in float64.
_NEAR = 1e-6


def check(node: "Node") -> NodeCheck:
    """Return what the local check says of one node. Neither random numbers nor gradients are touched."""
    try:
        verdict, reason = _checked(node)
    except Unredoable as unredoable:
        verdict, reason = "inconclusive", str(unredoable)
    return NodeCheck(node.name, verdict, reason, node.operation, node.source)


def _checked(node: "Node") -> Judgement:
    if node.kind == "leaf":
        raise Unredoable("it adds to the `.grad` of a leaf, and has no forward")
    if node.call is None:
        raise Unredoable("its forward was not seen: run that under `record_forward` and give it to `record_backward`")
    with torch.random.fork_rng(devices(tensors((node.call.args, node.call.kwargs)))):
        return _judged(redo(node.call))


def _judged(point: Point) -> Judgement:
    """Judge at the point of the recording; where the forward has a kink there, close by."""
    for where, at in (("", point), (" (close by: here it has a kink)", point.nearby)):
        found = list(_found(at))
        verdicts = {one.verdict for one in found}
        if "fault" in verdicts:
            return "fault", f"{next(one for one in found if one.verdict == 'fault')}{where}"
        if verdicts == {"match"}:
            return _for_other_strides(at) or ("match", f"differences agree in {len(found)} directions{where}")
    odd = next((f": {one}" for one in found if one.verdict == "inconclusive"), "")
    return "inconclusive", f"its forward is not smooth here, nor close by{odd}" if found else "it has no floating input"


def _for_other_strides(point: Point) -> Judgement | None:
    """A gradient comes with whatever strides its consumer gave it; a kernel may take it for contiguous."""
    plain, strided = point.rule(), point.rule(strided=True)
    for slot, expected in plain.items():
        if not _near(strided[slot], expected):
            return (
                "fault",
                f"for the same cotangent with other strides, its backward gives tensor input {slot} another gradient",
            )
    return None


def _near(got: torch.Tensor | None, expected: torch.Tensor | None) -> bool:
    if got is None or expected is None:
        return got is expected
    return torch.allclose(
        got, expected, rtol=_NEAR, atol=_NEAR * expected.abs().amax().item() if expected.numel() else 0, equal_nan=True
    )


def _found(point: Point) -> Iterator[Difference]:
    gradients = point.rule()
    for slot in point.leaves:
        yield from differences(point, slot, gradients[slot])
