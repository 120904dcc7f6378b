"""The noise of a run, recorded so that a run in double precision sees the same."""

from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from gradcheck_plus.compat import TorchDispatchMode


class Unreplayable(Exception):  # noqa: N818 - a condition, not a failure
    """A random operation whose result cannot be put back from what was recorded."""


class Tape(TorchDispatchMode):
    """Records what random operations drew; after `rewind`, puts it back instead of drawing."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call] # torch does not annotate it
        self.noise: deque[torch.Tensor] = deque()
        self.replaying = False

    def rewind(self) -> "Tape":
        """From here on, put back what was recorded."""
        self.replaying = True
        return self

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation; intervene where it draws."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        rule = _RULES.get(func.overloadpacket._qualified_op_name.removeprefix("aten::"), _drawn)
        return rule(self, func, args, kwargs)

    def draw(self, run: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Return what the operation draws, or what it drew when it was recorded."""
        if self.replaying:
            if not self.noise:
                raise Unreplayable("more random operations than were recorded")
            return self.noise.popleft()
        drawn = run()
        self.noise.append(drawn.detach().clone())
        return drawn


def _drawn(tape: Tape, func: Any, args: Any, kwargs: Any) -> Any:
    """An operation whose whole result is noise: uniform, normal, bernoulli, exponential and their like."""
    if not tape.replaying:
        return tape.draw(lambda: func(*args, **kwargs))
    drawn = tape.draw(lambda: args[0])
    if func._schema.is_mutable:
        return args[0].copy_(drawn)
    return drawn.to(args[0].dtype) if args and isinstance(args[0], torch.Tensor) and drawn.is_floating_point() else drawn


def _rrelu(tape: Tape, func: Any, args: Any, kwargs: Any) -> Any:
    """``rrelu_with_noise(input, noise, ...)`` draws its slopes into `noise`."""
    value, noise, training = args[0], args[1], args[4] if len(args) > 4 else kwargs.get("training", False)
    if not training:
        return func(*args, **kwargs)
    if not tape.replaying:
        result = func(*args, **kwargs)
        tape.noise.append(noise.detach().clone())
        return result
    noise.copy_(tape.draw(lambda: noise))
    return torch.where(value <= 0, value * noise, value)


def _fused(tape: Tape, func: Any, args: Any, kwargs: Any) -> Any:
    """A kernel that draws and computes at once, as fused attention with dropout does on CUDA."""
    if tape.replaying:
        raise Unreplayable(str(func))
    return func(*args, **kwargs)


def _quiet(tape: Tape, func: Any, args: Any, kwargs: Any) -> Any:
    """A kernel that is tagged as random and draws nothing: on a CPU, attention with dropout takes another one."""
    return func(*args, **kwargs)


_RULES: dict[str, Callable[[Tape, Any, Any, Any], Any]] = {
    "rrelu_with_noise": _rrelu,
    "native_dropout": _fused,
    "_scaled_dot_product_flash_attention_for_cpu": _quiet,
    "_scaled_dot_product_flash_attention": _fused,
    "_scaled_dot_product_efficient_attention": _fused,
    "_scaled_dot_product_cudnn_attention": _fused,
    "_cudnn_rnn": _fused,
}
