"""Inside a checkpoint, and with its backward split in two, a function has the gradients that it has outside."""

import torch.utils.checkpoint

from gradcheck_plus.functions.checks.check import Check, by
from gradcheck_plus.functions.support import floats, near, pulled, shown, vjp, weights


def nested(op, call, leaves, names):
    """Compare with the gradients under both of torch's checkpoints, and with those that are taken one leaf at a time."""
    expected = pulled(op, call, leaves)
    if all(e is None for e in expected):
        return
    for reentrant in (False, True):
        made = leaves()
        where = f"inside torch.utils.checkpoint(use_reentrant={reentrant})"
        inside = lambda *given: tuple(floats(call(op, *given)))  # noqa: E731
        try:
            ys = [
                y for y in floats(torch.utils.checkpoint.checkpoint(inside, *made, use_reentrant=reentrant)) if y.requires_grad
            ]
            torch.autograd.backward(ys, [weights(y) for y in ys])
        except Exception as error:
            yield None, "raises", f"it raises {type(error).__name__} {where}: {error}".splitlines()[0]
            return
        for slot, (t, e) in enumerate(zip(made, expected, strict=False)):
            if not near(e, t.grad):
                yield slot, "value", f"gradient of {names[slot]} is wrong {where}: got {shown(t.grad)}, expected {shown(e)}"
    made = leaves()
    ys = floats(call(op, *made))
    for slot, e in enumerate(expected):
        if not made[slot].requires_grad:
            continue
        only = [t if n == slot else t.detach() for n, t in enumerate(made)]
        try:
            (got,) = vjp(ys, only[slot : slot + 1], [weights(y) for y in ys], retain_graph=True)
        except Exception as error:
            split = f"when the backward is split and {names[slot]} is taken alone"
            yield None, "raises", f"it raises {type(error).__name__} {split}: {error}".splitlines()[0]
            return
        if not near(e, got):
            said = f"gradient of {names[slot]} is wrong when the backward is split and it is taken alone"
            yield slot, "value", f"{said}: got {shown(got)}, expected {shown(e)}"


CHECK = Check(
    "checkpoints",
    "gradients are the same inside torch's checkpoints, and when the backward is split",
    by(nested),
    core=nested,
    source="pytorch/pytorch#180952",
    rank=5,
)
