"""Forward and reverse mode are adjoint: the same Jacobian, from both sides."""

import torch
from torch.autograd import forward_ad

from gradcheck_plus.functions.checks.check import Check, Scene
from gradcheck_plus.functions.support import floats, pulled, size, weights, wide
from gradcheck_plus.functions.wording import number

_TOLERANCE = 1e-9


def check(scene: Scene):
    """Compare <c, Jv> with <J^T c, v>."""
    point = scene.point
    if not scene.double:
        scene.refuse("the two are compared in float64")
    gradients = pulled(scene.op, point.call, point.leaves)
    with forward_ad.dual_level():
        leaves = point.leaves()
        tangents = [weights(t, 2) if i in point.needed else None for i, t in enumerate(leaves)]
        duals = [
            t if v is None else forward_ad.make_dual(t.detach().clone(memory_format=torch.contiguous_format), v)
            for t, v in zip(leaves, tangents, strict=True)
        ]
        try:
            outputs = floats(point.call(scene.op, *duals))
        except RuntimeError as error:  # or a NotImplementedError, which is one
            scene.refuse(f"it has no forward mode: {type(error).__name__}")
        pushed = [forward_ad.unpack_dual(y) for y in outputs]
    forward = sum(_inner(weights(p.primal), p.tangent) for p in pushed if p.tangent is not None)
    reverse = sum(_inner(g, v) for g, v in zip(gradients, tangents, strict=True) if g is not None and v is not None)
    scale = sum(size(g) * size(v) * max(g.numel(), 1) for g, v in zip(gradients, tangents, strict=True) if g is not None)
    scene.judged += 1
    if not abs(forward) < float("inf") or not abs(reverse) < float("inf"):
        scene.refuse("a derivative is not finite")
    if abs(forward - reverse) > _TOLERANCE * max(scale, abs(forward), 1e-6):
        said = f"forward and reverse mode are not adjoint{scene.where}: <c, Jv> is {number(forward)}"
        said += f", <J^T c, v> is {number(reverse)}"
        yield scene.fault("value", "call", said, expected=number(forward), got=number(reverse))


def _inner(a: torch.Tensor, b: torch.Tensor) -> float:
    return float((wide(a).conj() * wide(b)).real.sum())


CHECK = Check(
    "adjoint",
    "forward mode, where there is one, has the same Jacobian as the backward",
    check,
    source="pytorch/pytorch#198017",
    rank=4,
)
