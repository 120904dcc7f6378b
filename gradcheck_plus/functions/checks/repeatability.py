"""The same call gives the same bits."""

import torch

from gradcheck_plus.functions.checks.check import Check, by
from gradcheck_plus.functions.support import floats, vjp, weights


def repeated(op, call, leaves, names):
    """Call it twice with the same random numbers."""
    results = []
    for _ in range(2):
        torch.manual_seed(0)
        made = leaves()
        ys = floats(call(op, *made))
        results.append(([y.detach().clone() for y in ys], vjp(ys, made, [weights(y) for y in ys])))
    (outputs, gradients), (outputs2, gradients2) = results

    def same(a, b):
        if a is None or b is None:
            return a is b
        return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())

    for n, (a, b) in enumerate(zip(outputs, outputs2, strict=False)):
        if not same(a, b):
            yield None, "not-repeatable", f"output {n} is not the same when it is called again with the same seed"
    for slot, (a, b) in enumerate(zip(gradients, gradients2, strict=False)):
        if not same(a, b):
            yield (
                slot,
                "not-repeatable",
                f"gradient of {names[slot]} is not the same when it is called again with the same seed",
            )


CHECK = Check(
    "repeatability",
    "the same call gives the same result and the same gradients",
    by(repeated),
    core=repeated,
    source="pytorch/pytorch#194869",
    rank=0,
)
