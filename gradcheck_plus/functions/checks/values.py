"""Outputs and gradients against the reference; without one, gradients against central differences of the forward."""

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from gradcheck_plus.functions.checks.check import Check, Scene
from gradcheck_plus.functions.numeric import Wrong, compared
from gradcheck_plus.functions.support import floats, gradients, size, wide
from gradcheck_plus.functions.wording import differing, gradient_text, number, numbers
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.tolerance import UNIT

#: How many units in the last place two ways to compute one thing may be apart, over the largest element; see `allowed`.
_APART = {"float64": 4096.0, "float32": 256.0, "bfloat16": 8.0, "float16": 8.0}


def check(scene: Scene) -> Iterator[Mismatch]:
    """Compare."""
    if scene.reference is None:
        yield from _by_differences(scene)
    else:
        yield from _by_reference(scene, scene.reference)


# with a reference -------------------------------------------------------------------------------------------------------


def _by_reference(scene: Scene, reference: Callable[..., Any]) -> Iterator[Mismatch]:
    point = scene.point
    try:
        expected = gradients(point.run, reference, point.leaves, point.times)
    except Exception as error:
        scene.refuse(f"the reference raises {type(error).__name__}")
    found = list(_outputs(scene, reference))
    yield from found
    if found:
        return
    got = gradients(point.run, scene.op, point.leaves, point.times)
    limits = allowed(scene, reference, expected)
    for i in point.needed:
        yield from judged(scene, i, got[i], expected[i], limits[i])


def judged(
    scene: Scene, slot: int, got: torch.Tensor | None, expected: torch.Tensor | None, limit: float
) -> Iterator[Mismatch]:
    """Compare one gradient. `None` where the other is all zeros is no fault of a function: autograd adds up the two alike."""
    name = scene.names[slot]
    if got is None or expected is None:
        other = expected if got is None else got
        if other is None or not other.count_nonzero().item():
            return
        wrong = scene.when
        yield scene.fault("presence", name, gradient_text(name, got, expected, wrong))
        return
    scene.judged += int(expected.count_nonzero()) + ("size-zero" in scene.call.names)
    if got.shape == expected.shape and not bool(differing(wide(got), wide(expected), limit).any()):
        return
    yield scene.fault("value", name, gradient_text(name, got, expected, scene.when, limit))


def allowed(scene: Scene, reference: Callable[..., Any], expected: Sequence[torch.Tensor | None]) -> list[float]:
    """Return how far each gradient may be off: the reference's own error, and rounding of the coarsest dtype in play.

    In float64 the error is seen by moving every value by one unit in the last place; elsewhere it is the distance to float64.
    """
    point = scene.point
    unit, apart = coarsest(scene)
    truth = _nudged(scene, reference) if scene.double else _gradients(point.in_double(), reference)
    scale = max((size(e) for e in expected), default=0.0)
    limits = []
    for e, t in zip(expected, truth, strict=True):
        error = 0.0 if e is None or t is None or e.shape != t.shape else _error(e, t)
        limits.append(apart * unit * (size(e) + 1e-3 * scale) + 16 * error)
    return limits


def coarsest(scene: Scene) -> tuple[float, float]:
    """Return the unit roundoff of the least precise dtype, and how many of them are allowed."""
    names = {
        str(wide(s.value).dtype if scene.double else s.value.dtype).removeprefix("torch.")
        for s in scene.point.slots
        if s.floating
    }
    names |= {scene.point.autocast, scene.narrowest}
    known = [n for n in names if n in UNIT] or ["float32" if "complex64" in names else "float64"]
    coarse = max(known, key=lambda n: UNIT[n])
    return UNIT[coarse], _APART[coarse]


def _error(e: torch.Tensor, t: torch.Tensor) -> float:
    far = (wide(e) - wide(t)).abs()
    far = far[far.isfinite()]
    return float(far.max()) if far.numel() else 0.0


def _gradients(point: Any, op: Callable[..., Any]) -> list[torch.Tensor | None]:
    found: list[torch.Tensor | None] = [None for _ in point.slots]
    with contextlib.suppress(Exception):  # where the truth cannot be had, rounding has to do
        found = gradients(point.run, op, point.leaves)
    return found


def _nudged(scene: Scene, op: Callable[..., Any]) -> list[torch.Tensor | None]:
    """Return the gradients of values that are all larger by one unit in the last place: ties and zeros stay what they are."""
    point = scene.point.in_double()
    for slot in point.slots:
        if slot.floating:
            slot.value = slot.value * (1 + 2.0**-52)
    return _gradients(point, op)


def _outputs(scene: Scene, reference: Callable[..., Any]) -> Iterator[Mismatch]:
    point = scene.point
    with torch.no_grad():
        ours, theirs = (floats(point.call(f, *point.leaves())) for f in (scene.op, reference))
    if len(ours) != len(theirs):
        said = f"it returns {len(ours)} floating tensors{scene.where}, the reference {len(theirs)}"
        yield scene.fault("structure", "outputs", said)
        return
    limits = output_limits(scene, reference)
    for n, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        name = f"output {n}" if len(ours) > 1 else "the output"
        if a.shape != b.shape:
            yield scene.fault(
                "shape", name, f"{name} has shape {tuple(a.shape)}{scene.where}, that of the reference {tuple(b.shape)}"
            )
            continue
        limit = limits[n]
        wrong = differing(wide(a), wide(b), limit)
        if bool(wrong.any()):
            places = wrong.nonzero().tolist()[:2]
            got, want = ([wide(t)[tuple(i)].item() for i in places] for t in (a, b))
            said = f"{name} is wrong{scene.where}: got {numbers(got)}, expected {numbers(want)}"
            yield scene.fault("value", name, said + (f" at {places}" if a.dim() else ""))


def output_limits(scene: Scene, reference: Callable[..., Any]) -> list[float]:
    """Return how far each output may be off."""
    point = scene.point
    with torch.no_grad():
        theirs = floats(point.call(reference, *point.leaves()))
    unit, apart = coarsest(scene)
    scale = max((size(t) for t in theirs), default=0.0)
    return [4 * apart * unit * max(size(t), 1e-3 * scale) + _conditioned(scene, reference, n, t) for n, t in enumerate(theirs)]


def _conditioned(scene: Scene, reference: Callable[..., Any], number: int, at: torch.Tensor) -> float:
    """Return how far the reference's own output is from what it is in float64, or at values moved by a unit."""
    point = scene.point.in_double()
    if scene.double:
        for slot in point.slots:
            slot.value = slot.value * (1 + 2.0**-52) if slot.floating else slot.value
    try:
        with torch.no_grad():
            other = floats(point.call(reference, *point.leaves()))[number]
    except Exception:
        return 0.0
    return 16 * _error(at, other) if other.shape == at.shape else 0.0


# without one ------------------------------------------------------------------------------------------------------------


def _by_differences(scene: Scene) -> Iterator[Mismatch]:
    point = scene.point
    if not scene.double:
        scene.refuse("differences need float64")
    with torch.no_grad():
        if not all(bool(y.isfinite().all()) for y in floats(point.call(scene.op, *point.leaves()))):
            scene.refuse("an output is not finite")  # nor is its gradient, even where nobody uses it
    got = gradients(point.run, scene.op, point.leaves, point.times)
    wrong, kinks = compared(point, scene.op, got)
    if any(w.got is not None and not math.isfinite(w.got) for w in wrong):
        wrong = _smooth(scene, wrong)
    scene.kinks += kinks
    scene.judged += sum(g is not None and bool(g.count_nonzero().item()) for g in got) + ("size-zero" in scene.call.names)
    for slot in dict.fromkeys(w.slot for w in wrong):
        yield _wrong(scene, [w for w in wrong if w.slot == slot])


def _smooth(scene: Scene, wrong: Sequence[Wrong]) -> list[Wrong]:
    """Leave out what is not finite since the derivative of an element is infinite that this use of the result does not reach.

    Plain autograd multiplies that by a cotangent of zero, too.
    """
    plain = replace(scene.point, use=("return terms(y)",))
    again, _ = compared(plain, scene.op, gradients(plain.run, scene.op, plain.leaves))
    there = {(w.slot, w.index) for w in again}
    return [w for w in wrong if w.got is None or math.isfinite(w.got) or (w.slot, w.index) in there]


def _wrong(scene: Scene, found: Sequence[Wrong]) -> Mismatch:
    name, shown = scene.names[found[0].slot], found[:3]
    got, expected = numbers([w.got for w in shown]), numbers([w.expected for w in shown])
    places = f" at {', '.join(str(list(w.index)) for w in shown)}" if shown[0].index else ""
    count = f" ({len(found)} elements)" if len(found) > len(shown) else ""
    ratios = [w.got / w.expected if w.got is not None and w.expected else math.nan for w in found]
    same = len(ratios) > 1 and max(ratios) - min(ratios) <= 1e-4 * abs(ratios[0])
    looks = f"; it is {number(ratios[0])} times what it should be" if same else ""
    said = f"gradient of `{name}` is wrong{scene.where}: got {got}, expected {expected} by central differences"
    said += f"{places}{count}{looks}"
    return scene.fault("presence" if found[0].got is None else "value", name, said, expected=expected, got=got)


CHECK = Check(
    "values",
    "outputs and gradients are those of the reference; without one, gradients are those of central differences",
    check,
    "linkedin/Liger-Kernel#1298",
    rank=6,
    often=12,
    uses=True,
)
