"""The second derivative is right, or refused loudly."""

import math

import torch

from gradcheck_plus.functions.checks.check import Check, Scene
from gradcheck_plus.functions.numeric import compared
from gradcheck_plus.functions.point import Point
from gradcheck_plus.functions.support import floats, gradients, terms
from gradcheck_plus.functions.wording import number, numbers


def first_order(op, call, leaves):
    """What the gradient of a loss that is not linear in the result adds up to, as something that can be differentiated."""
    with torch.enable_grad():
        made = [
            t if t.requires_grad else t.detach().requires_grad_() if t.is_floating_point() or t.is_complex() else t
            for t in leaves
        ]
        ys = [y for y in floats(call(op, *made)) if y.requires_grad]
        wanted = [t for t in made if t.requires_grad]
        loss = sum(terms(y * y / 2 + y).sum() for y in ys)
        found = torch.autograd.grad(loss, wanted, create_graph=True, allow_unused=True)
        return terms(*[g for g in found if g is not None])


def check(scene: Scene):
    """Compare the gradient of the gradient with differences of the gradient."""
    if not scene.double:
        scene.refuse("differences need float64")
    plain = scene.point
    second_point = second(plain)
    try:
        first_order(scene.op, plain.call, plain.leaves())
    except RuntimeError as error:
        scene.refuse(f"the first derivative raises {type(error).__name__}")
    try:
        got = gradients(second_point.run, scene.op, second_point.leaves)
    except RuntimeError as error:  # or a NotImplementedError, which is one
        scene.refuse(f"it refuses to be differentiated twice: {type(error).__name__}")
    wrong, kinks = compared(second_point, scene.op, got)
    scene.kinks += kinks
    scene.judged += 1
    if wrong:
        name = scene.names[wrong[0].slot]
        shown = [w for w in wrong if w.slot == wrong[0].slot][:3]
        lost = all(not w.got for w in wrong)
        infinite = any(w.got is not None and not math.isfinite(w.got) for w in shown)
        how = "lost" if lost else "wrong"
        hint = "; what the backward uses has no graph: it was not saved with save_for_backward, or was detached"
        hint = "; it is not finite" if infinite else hint
        said = f"second derivative by `{name}` is silently {how}{scene.where}: got {numbers([w.got or 0.0 for w in shown])}"
        said += ", expected"
        said += f" {numbers([w.expected for w in shown])}, or an exception{hint}"
        yield scene.fault("value", name, said, expected=number(shown[0].expected), got=number(shown[0].got or 0.0))


def second(plain: Point) -> Point:
    """Return a point where what is added up is the gradient."""
    return _Second(**{f: getattr(plain, f) for f in plain.__dataclass_fields__})


class _Second(Point):
    """A point where what is added up is the gradient."""

    @property
    def run(self):
        """``run(op, *leaves)``: the elements of the gradient."""
        return lambda op, *leaves: first_order(op, self.call, leaves)


CHECK = Check(
    "double-backward",
    "the second derivative is right, or refused with an exception",
    check,
    source="pytorch/pytorch#58509, #76185, #99523",
    rank=8,
    often=3,
)
