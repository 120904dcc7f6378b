"""A function gives on a GPU what it gives on the CPU."""

from dataclasses import replace

import torch

from gradcheck_plus.functions.checks.check import Check, Scene
from gradcheck_plus.functions.support import gradients, size
from gradcheck_plus.functions.wording import gradient_text

_TOLERANCE = 1e-9


def check(scene: Scene):
    """Compare the gradients on both."""
    if not torch.cuda.is_available():
        scene.refuse(f"this torch ({torch.__version__}) sees no CUDA device")
    if not scene.double:
        scene.refuse("the two are compared in float64")
    point = scene.point
    there = replace(point, slots=[replace(s, value=s.value.cuda()) for s in point.slots])
    expected = gradients(point.run, scene.op, point.leaves, point.times)
    got = gradients(there.run, scene.op, there.leaves, point.times)
    scene.judged += 1
    here = [None if g is None else g.cpu() for g in got]
    for slot, (g, e) in enumerate(zip(here, expected, strict=True)):
        limit = _TOLERANCE * max(size(e), 1.0)
        if (g is None) != (e is None) or (g is not None and e is not None and bool(((g - e).abs() > limit).any())):
            said = gradient_text(scene.names[slot], g, e, f"it runs on CUDA{' and ' if scene.when else ''}{scene.when}", limit)
            yield scene.fault("value", scene.names[slot], said)


CHECK = Check(
    "devices",
    "gradients on CUDA are those on the CPU",
    check,
    source="pytorch/pytorch#195210",
    rank=5,
)
