"""Where a Function declares that it works under torch.func, it does."""

import torch

from gradcheck_plus.functions.checks.check import Check, Scene
from gradcheck_plus.functions.support import floats, near, pulled, shown, weights
from gradcheck_plus.functions.tested import function_class


def check(scene: Scene):
    """Compare torch.func.vjp with autograd, and vmap with a loop."""
    owner = function_class(scene.given)
    if owner is None or owner.setup_context is torch.autograd.Function.setup_context:
        scene.refuse("it is no Function with a setup_context, which torch.func needs")
    point = scene.point
    leaves, needed = point.leaves(), point.needed
    expected = pulled(scene.op, point.call, point.leaves)

    def function(*given):
        full = [t.detach() for t in leaves]
        for i, t in zip(needed, given, strict=True):
            full[i] = t
        return tuple(floats(point.call(scene.op, *full)))

    primals = tuple(leaves[i].detach() for i in needed)
    outputs, pull = torch.func.vjp(function, *primals)[:2]
    scene.judged += 1
    for i, got in zip(needed, pull(tuple(weights(y) for y in outputs)), strict=True):
        if not near(expected[i], got):
            said = f"gradient of `{scene.names[i]}` is wrong under torch.func.vjp{scene.where}: got {shown(got)}"
            yield scene.fault("value", scene.names[i], f"{said}, expected {shown(expected[i])}")
            return
    if not (getattr(owner, "generate_vmap_rule", False) or owner.vmap is not torch.autograd.Function.vmap):
        return
    batched = tuple(torch.stack([p, p * 0.75]) for p in primals)
    got = torch.func.vmap(function)(*batched)
    loop = [function(*(b[n] for b in batched)) for n in range(2)]
    for k, y in enumerate(got):
        each = torch.stack([one[k] for one in loop])
        if not near(each, y):
            yield scene.fault(
                "value",
                f"output {k}",
                f"output {k} is wrong under torch.func.vmap{scene.where}: got {shown(y)}, expected {shown(each)}",
            )
            return


CHECK = Check(
    "transforms",
    "where it is declared, torch.func.vjp and vmap give what autograd and a loop give",
    check,
    source="pytorch/pytorch#90224",
    rank=5,
)
