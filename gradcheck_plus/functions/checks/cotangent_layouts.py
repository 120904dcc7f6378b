"""A cotangent comes with whatever layout its consumer gave it, and belongs to the consumer."""

from gradcheck_plus.functions.checks.check import Check, by
from gradcheck_plus.functions.support import expanded, floats, near, offset, shown, strided, transposed, vjp, weights


def laid_out(op, call, leaves, names):
    """Give the same cotangents with other layouts; none may be changed."""
    for text, layout in (
        ("contiguous", None),
        ("strided", strided),
        ("transposed", transposed),
        ("offset", offset),
        ("expanded", expanded),
    ):
        made, plain = leaves(), leaves()
        ys, others = floats(call(op, *made)), floats(call(op, *plain))
        cotangents = [layout(weights(y)) if layout and y.dim() else weights(y) for y in ys]
        before = [c.clone() for c in cotangents]
        try:
            got = vjp(ys, made, cotangents)
        except Exception as error:
            yield None, "raises", f"it raises {type(error).__name__} for a cotangent that is {text}: {error}".splitlines()[0]
            continue
        if not all(bool(((a == b) | (a != a)).all()) for a, b in zip(before, cotangents, strict=False)):
            yield None, "version", f"its backward changes the cotangent that it is given ({text}), which others may still need"
            continue
        expected = vjp(others, plain, [c.clone() for c in before])
        for slot, (g, e) in enumerate(zip(got, expected, strict=False)):
            if not near(e, g):
                said = f"gradient of {names[slot]} is wrong for a cotangent that is {text} in memory"
                yield slot, "value", f"{said}: got {shown(g)}, expected {shown(e)} as for a contiguous one"


CHECK = Check(
    "cotangent-layouts",
    "gradients are the same for cotangents that are strided, expanded or transposed in memory, and those are not changed",
    by(laid_out),
    core=laid_out,
    source="Dao-AILab/flash-attention#355, pytorch/pytorch#195210",
    rank=1,
    often=2,
)
