"""Environments: what surrounds the forward and the backward."""

from collections.abc import Sequence

from gradcheck_plus.case import Container, Environment, Segment
from gradcheck_plus.case.environment import Delay, Hook
from gradcheck_plus.strategies.chooser import Chooser
from gradcheck_plus.strategies.primals import Precision
from gradcheck_plus.subject import STAGES, Kind

_HOOKS: tuple[tuple[Hook, str], ...] = (
    ("input", "input-hook"),
    ("output", "output-hook"),
    ("parameter", "parameter-hook"),
    ("post-accumulate", "post-accumulate-hook"),
    ("forward", "forward-hook"),
    ("backward", "backward-hook"),
)


def environments(c: Chooser, of: Precision, kind: Kind, segments: Sequence[Segment], *, trainable: bool) -> Environment:
    """Draw an environment; shrinks towards one forward and one backward in train mode with nothing around them."""
    schedule = _schedule(c)
    return Environment(
        train=not c.given("eval"),
        autocast=of.autocast,  # type: ignore[arg-type] # precision draws nothing else
        draws_after=c.integer(1, 3) if c.given("draw-after") else 0,
        existing_grad=c.given("existing-grad"),
        schedule=schedule,
        hooks=_hooks(c, segments),
        changes_parameter=trainable and schedule == "F0" and c.flag("parameter-changed", 50),
        reuses_inputs=(reuses := schedule == "F0F1" and c.given("reused-input")),
        none_for_zero=kind in STAGES and c.flag("none-cotangent"),
        reversed_keys=c.given("reversed-keys"),
        weights=_weights(c, crossing=not reuses),
        reversed_parameters=c.given("reversed-parameters"),
        repeated_input=c.given("repeated-input"),
    )


def _weights(c: Chooser, *, crossing: bool) -> Delay:
    """Draw when parameters receive their gradients; `crossing`: it may be after the next forward."""
    if not c.given("delayed-weights"):
        return ""
    if crossing and c.given("reordered-weights"):
        return c.pick(("reversed", "stages"))
    return c.pick(("forward", "end")) if crossing else "forward"


def _schedule(c: Chooser) -> str:
    if c.flag("two-forwards", 40):
        return c.pick(("FF01", "FF10"))
    if c.flag("accumulation", 40):
        return "F0F1"
    return "F00" if c.flag("second-backward", 50) else "F0"


def _hooks(c: Chooser, segments: Sequence[Segment]) -> tuple[Hook, ...]:
    hooks = tuple(hook for hook, trait in _HOOKS if c.given(trait))
    return hooks if all(map(_hookable, segments)) else tuple(hook for hook in hooks if hook != "backward")


def _hookable(segment: Segment) -> bool:
    """Does a full backward hook see the output? Torch looks for tensors in a bare tensor and in a flat tuple."""
    if not isinstance(segment.output, Container):
        return True
    return segment.output.kind == "tuple" and not any(isinstance(child, Container) for child in segment.output.children)
