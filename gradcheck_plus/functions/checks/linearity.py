"""A backward is linear in its cotangent."""

from gradcheck_plus.functions.checks.check import Check, by
from gradcheck_plus.functions.support import finite, near, pulled, shown, size, weights


def linear(op, call, leaves, names):
    """Scale the cotangent, and add two."""
    one = pulled(op, call, leaves)
    two = pulled(op, call, leaves, lambda y: weights(y, 3))
    for text, cotangent, combined in (
        ("twice the cotangent", lambda y: 2 * weights(y), lambda a, b: 2 * a),
        ("minus the cotangent", lambda y: -weights(y), lambda a, b: -a),
        ("a cotangent of zeros", lambda y: 0 * weights(y), lambda a, b: 0 * a),
        ("the sum of two cotangents", lambda y: weights(y) + weights(y, 3), lambda a, b: a + b),
    ):
        found = pulled(op, call, leaves, cotangent)
        for slot, (a, b, c) in enumerate(zip(one, two, found, strict=False)):
            if a is None or b is None or not finite(a, b):
                continue
            if not near(combined(a, b), c, size(a) + size(b)):
                said = f"the backward is not linear: for {text} the gradient of {names[slot]} is {shown(c)}"
                yield slot, "value", f"{said} where it should be {shown(combined(a, b))}"


CHECK = Check(
    "linearity",
    "twice the cotangent gives twice the gradient, and two cotangents together give the sum",
    by(linear),
    core=linear,
    source="NVIDIA/TransformerEngine#2139",
    rank=1,
    often=2,
)
