"""What is passed in stays as it is, unless it is declared dirty and returned."""

import torch

from gradcheck_plus.functions.checks.check import Check, by
from gradcheck_plus.functions.support import floats, leaf, vjp, weights


def unmodified(op, call, leaves, names):
    """Compare the arguments before and after the forward, and after the backward."""
    if isinstance(op, torch.nn.Module):
        return
    given = []

    def watched(*args, **kwargs):
        own = [a.clone() if torch.is_tensor(a) else a for a in args]
        given.append(([a for a in own if torch.is_tensor(a)], [leaf(a, grad=False) for a in own if torch.is_tensor(a)]))
        return op(*own, **kwargs)

    made = leaves()
    result = call(watched, *made)
    ys = floats(result)
    returned = {y.data_ptr() for y in ys}
    for when in ("forward", "backward"):
        if when == "backward":
            vjp(ys, made, [weights(y) for y in ys])
        for values, before in given:
            for n, (a, b) in enumerate(zip(values, before, strict=False)):
                changed = not bool(((a == b) | (a != a)).all())
                if changed and not (when == "forward" and a.data_ptr() in returned):
                    behind = ", and autograd cannot know" if when == "forward" and a._version == 0 else ""
                    yield None, "version", f"its {when} changes argument {n} in place{behind}: who made it may have saved it"
                    return
                if changed:
                    return


CHECK = Check(
    "inputs-unmodified",
    "arguments are not changed, unless they are marked dirty and returned",
    by(unmodified),
    core=unmodified,
    source="linkedin/Liger-Kernel#272, #343",
    rank=2,
    often=2,
)
