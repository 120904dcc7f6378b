"""An output that nobody uses has no cotangent, which counts as zeros."""

import torch

from gradcheck_plus.functions.checks.check import Check, by
from gradcheck_plus.functions.support import floats, near, shown, vjp, weights


def missing(op, call, leaves, names):
    """Use each output alone, and leave each one out."""
    count = len(floats(call(op, *leaves())))
    if count < 2:
        return
    for used in [*({n} for n in range(count)), *(set(range(count)) - {n} for n in range(count))]:
        unused = " and ".join(f"output {n}" for n in range(count) if n not in used)
        results = []
        for zeros in (False, True):
            made = leaves()
            ys = floats(call(op, *made))
            absent = [torch.zeros_like(y) if zeros else None for y in ys]
            cotangents = [weights(y) if n in used else absent[n] for n, y in enumerate(ys)]
            try:
                results.append(vjp(ys, made, cotangents))
            except Exception as error:
                yield None, "raises", f"it raises {type(error).__name__} when {unused} is not used: {error}".splitlines()[0]
                break
        if len(results) < 2:
            continue
        for slot, (got, expected) in enumerate(zip(*results, strict=False)):
            if not near(expected, got):
                said = f"gradient of {names[slot]} is wrong when {unused} is not used: got {shown(got)}"
                yield slot, "value", f"{said}, expected {shown(expected)} as for zeros"


CHECK = Check(
    "missing-cotangents",
    "an output that nobody uses counts like one that receives zeros",
    by(missing),
    core=missing,
    source="pytorch/pytorch#58511, pytorch/pytorch#12631",
    rank=1,
    often=2,
)
