"""What cannot have a gradient does not ask for one; what can has not lost it."""

import torch

from gradcheck_plus.functions.checks.check import Check, Scene
from gradcheck_plus.functions.support import floats


def check(scene: Scene):
    """Compare which outputs require grad with the reference; without one, see that none does where no input does."""
    point = scene.point
    ours = floats(point.call(scene.op, *point.leaves()))
    scene.judged += 1
    if scene.reference is not None:
        theirs = floats(point.call(scene.reference, *point.leaves()))
        if len(ours) == len(theirs):
            for n, (a, b) in enumerate(zip(ours, theirs, strict=True)):
                if a.requires_grad == b.requires_grad:
                    continue
                wrong = "requires grad, but has none: mark it non-differentiable" if a.requires_grad else "has lost its graph"
                said = f"output {n} {wrong}{scene.where}"
                yield scene.fault("requires-grad", f"output {n}", said, expected=str(b.requires_grad), got=str(a.requires_grad))
    frozen = [t.detach() for t in point.leaves()]
    alone = floats(point.call(scene.op, *frozen))
    if not any(p.requires_grad for p in _parameters(scene)):
        for n, y in enumerate(alone):
            if y.requires_grad:
                said = f"output {n} requires grad though no argument does{scene.where}"
                yield scene.fault("requires-grad", f"output {n}", said, expected="False", got="True")


def _parameters(scene: Scene):
    return scene.given.parameters() if isinstance(scene.given, torch.nn.Module) else ()


CHECK = Check(
    "nondifferentiable",
    "outputs require grad where they have a gradient, and only there",
    check,
    source="pytorch/pytorch#14875",
    rank=3,
)
