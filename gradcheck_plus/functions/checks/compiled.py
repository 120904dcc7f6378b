"""torch.compile changes nothing."""

import torch

from gradcheck_plus.functions.checks.check import Check, Scene
from gradcheck_plus.functions.support import floats, near, pulled, shown


def check(scene: Scene):
    """Compare outputs and gradients of the compiled function; traced by AOTAutograd, and run as it was traced."""
    point = scene.point
    torch._dynamo.reset()
    compiled = torch.compile(scene.op, backend="aot_eager", dynamic=False)
    expected, got = (pulled(op, point.call, point.leaves) for op in (scene.op, compiled))
    scene.judged += 1
    with torch.no_grad():
        outputs = [floats(point.call(op, *point.leaves())) for op in (scene.op, compiled)]
    for n, (a, b) in enumerate(zip(*outputs, strict=True)):
        if not near(a, b):
            yield scene.fault(
                "value",
                f"output {n}",
                f"output {n} is wrong under torch.compile{scene.where}: got {shown(b)}, expected {shown(a)}",
            )
    for slot, (e, g) in enumerate(zip(expected, got, strict=True)):
        if not near(e, g):
            said = f"gradient of `{scene.names[slot]}` is wrong under torch.compile{scene.where}: got {shown(g)}"
            said += f", expected {shown(e)}"
            yield scene.fault("value", scene.names[slot], said)


CHECK = Check(
    "compile",
    "torch.compile changes neither results nor gradients; made only if it is asked for",
    check,
    source="pytorch/pytorch#147995",
    rank=5,
    asked=True,
)
