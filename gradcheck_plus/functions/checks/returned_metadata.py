"""A gradient has the shape, dtype and device of what it belongs to: the engine sums and casts silently what has not."""

import torch

from gradcheck_plus.compat import returned_by
from gradcheck_plus.functions.checks.check import Check, Scene
from gradcheck_plus.functions.support import floats, weights
from gradcheck_plus.functions.tested import function_class
from gradcheck_plus.mismatch import MismatchKind


def check(scene: Scene):
    """Look at what the backward of a Function returns, before the engine mends it."""
    if function_class(scene.given) is None:
        scene.refuse("only the backward of a Function can be seen")
    point = scene.point
    leaves = point.leaves()
    ys = [y for y in floats(point.call(scene.op, *leaves)) if y.requires_grad and y.grad_fn is not None]
    if not ys:
        scene.refuse("nothing requires grad")
    node = ys[0].grad_fn
    by_variable = {id(t): i for i, t in enumerate(leaves)}
    targets = [_leaf(child, by_variable) for child, _ in node.next_functions]
    with returned_by(node) as returned:
        torch.autograd.backward(ys, [weights(y) for y in ys])
    scene.judged += 1
    for found, slot in zip(returned, targets, strict=False):
        if found is None or slot is None:
            continue
        t, name = leaves[slot], scene.names[slot]
        facts: tuple[tuple[MismatchKind, object, object], ...] = (
            ("shape", tuple(found.shape), tuple(t.shape)),
            ("dtype", found.dtype, t.dtype),
            ("device", found.device, t.device),
        )
        for kind, got, expected in facts:
            if got != expected:
                said = f"the backward returns a gradient of {kind} {got} for `{name}`, which has {kind} {expected}{scene.where}"
                yield scene.fault(kind, name, f"{said}; the engine changes it silently", expected=str(expected), got=str(got))


def _leaf(node: object, by_variable: dict[int, int]) -> int | None:
    return by_variable.get(id(getattr(node, "variable", None)))


CHECK = Check(
    "returned-metadata",
    "what a backward returns has the shape, dtype and device of the argument",
    check,
    source="pytorch/pytorch#65244",
    rank=5,
)
