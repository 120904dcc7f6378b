"""What a backward needs is saved where autograd watches it: a change afterwards is refused, or does no harm."""

import torch

from gradcheck_plus.functions.checks.check import Check, by
from gradcheck_plus.functions.support import floats, near, pulled, shown, vjp, weights


def saved(op, call, leaves, names):
    """Change each argument, and the result, in place between forward and backward."""
    if isinstance(op, torch.nn.Module):
        return
    expected = pulled(op, call, leaves)
    for target in [*range(len(names)), "the result"]:
        given: list[torch.Tensor] = []

        def watched(*args, **kwargs):
            own = [a.clone() if torch.is_tensor(a) else a for a in args]
            given.extend(a for a in own if torch.is_tensor(a))
            return op(*own, **kwargs)

        made = leaves()
        ys = floats(call(watched, *made))
        changed = ys if target == "the result" else given[target : target + 1]
        try:
            with torch.no_grad():
                for t in floats(changed):
                    t.add_(1)
            got = vjp(ys, made, [weights(y) for y in ys])
        except RuntimeError:  # as plain autograd does where it matters
            continue
        what = target if isinstance(target, str) else f"argument {target}"
        for slot, (g, e) in enumerate(zip(got, expected, strict=False)):
            if not near(e, g):
                said = f"gradient of {names[slot]} is silently wrong when {what} is changed in place before the backward"
                hint = "; it is kept on ctx or as .data, and not in save_for_backward"
                yield slot, "not-raised", f"{said}: got {shown(g)}, expected {shown(e)} or an exception{hint}"


CHECK = Check(
    "saved-state",
    "an argument that is changed in place before the backward is noticed, or does not matter",
    by(saved),
    core=saved,
    source="pytorch/pytorch#76185, dmlc/dgl#1060",
    rank=2,
    often=2,
)
