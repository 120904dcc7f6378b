"""Inputs die with the graph."""

import gc
import weakref
from typing import Any

import torch

from gradcheck_plus.functions.checks.check import Check, by
from gradcheck_plus.functions.support import floats, vjp, weights


def leaked(op, call, leaves, names):
    """Call it, run the backward or not, let go of everything, and see what still lives."""
    if isinstance(op, torch.nn.Module):
        return
    for backward in (True, False):
        seen: list[Any] = []

        def watched(*args, **kwargs):
            own = [a.clone() if torch.is_tensor(a) else a for a in args]
            seen.extend(weakref.ref(a) for a in own if torch.is_tensor(a))
            return op(*own, **kwargs)

        def used() -> None:
            made = leaves()
            ys = floats(call(watched, *made))
            if backward:
                vjp(ys, made, [weights(y) for y in ys])

        used()
        if any(ref() is not None for ref in seen):
            gc.collect()
        for n, ref in enumerate(seen):
            if ref() is not None:
                after = "its backward" if backward else "its graph is let go of without a backward"
                yield None, "alias", f"it keeps argument {n} alive after {after}: memory grows with every call"
                return


CHECK = Check(
    "leak",
    "arguments are let go of when the graph is",
    by(leaked),
    core=leaked,
    source="pytorch/pytorch#25340",
    rank=9,
)
