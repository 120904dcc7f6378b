"""The noise of a run, recorded so that a run in double precision sees the same."""

from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from gradcheck_plus.compat import TorchDispatchMode, arguments, changes_operand, operation_name


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
        rule = _RULES.get(operation_name(func), _drawn)
        return rule(self, func, args, kwargs)

    def draw(self, run: Callable[[], torch.Tensor]) -> torch.Tensor:
        """Return what the operation draws, or what it drew when it was recorded."""
        if self.replaying:
            if not self.noise:
                raise Unreplayable("more random operations than were recorded")
            return self.noise.popleft()
        drawn = run()
        if not isinstance(drawn, torch.Tensor):
            raise Unreplayable("a random operation whose result is not one tensor")
        self.noise.append(drawn.detach().clone())
        return drawn


def _drawn(tape: Tape, func: Any, args: Any, kwargs: Any) -> Any:
    """An operation whose whole result is noise: uniform, normal, bernoulli, exponential and their like."""
    if not tape.replaying:
        return tape.draw(lambda: func(*args, **kwargs))
    drawn = tape.draw(lambda: args[0])
    if changes_operand(func):
        return args[0].copy_(drawn)
    dtype = args[0].dtype if args and isinstance(args[0], torch.Tensor) else kwargs.get("dtype")
    return drawn.to(dtype) if dtype is not None and drawn.is_floating_point() else drawn


def _rrelu(tape: Tape, func: Any, args: Any, kwargs: Any) -> Any:
    """``rrelu_with_noise(input, noise, ...)`` draws its slopes into `noise`; so does the one that writes into its input."""
    value, noise, training = args[0], args[1], args[4] if len(args) > 4 else kwargs.get("training", False)
    if not training:
        return func(*args, **kwargs)
    if not tape.replaying:
        result = func(*args, **kwargs)
        tape.noise.append(noise.detach().clone())
        return result
    noise.copy_(tape.draw(lambda: noise))
    result = torch.where(value <= 0, value * noise, value)
    return value.copy_(result) if operation_name(func).endswith("_") else result


def _dropout(tape: Tape, func: Any, args: Any, kwargs: Any) -> Any:
    """``native_dropout(input, p, train)`` returns the mask that it drew; CUDA has it for any dropout."""
    value, p, train = args[0], args[1], args[2] if len(args) > 2 else kwargs["train"]
    if train is False:
        return func(*args, **kwargs)
    if not tape.replaying:
        result, mask = func(*args, **kwargs)
        tape.noise.append(mask.clone())
        return result, mask
    mask = tape.draw(lambda: value)
    return value * mask * (0.0 if p == 1 else 1 / (1 - p)), mask


def _fused(probability: str) -> Callable[[Tape, Any, Any, Any], Any]:
    """Make the rule of a kernel that draws and computes at once, unless this argument of it is zero.

    It cannot be recorded: in double precision another kernel runs, which would take the noise of something else for its own.
    """

    def rule(tape: Tape, func: Any, args: Any, kwargs: Any) -> Any:
        if arguments(func, args, kwargs)[probability]:
            raise Unreplayable(str(func))
        return func(*args, **kwargs)

    return rule


def _quiet(tape: Tape, func: Any, args: Any, kwargs: Any) -> Any:
    """A kernel that is tagged as random and draws nothing that a tape must know.

    On a CPU, attention with dropout takes another kernel; on CUDA, its forward would have ended the recording already.
    """
    return func(*args, **kwargs)


_RULES: dict[str, Callable[[Tape, Any, Any, Any], Any]] = {
    "rrelu_with_noise": _rrelu,
    "rrelu_with_noise_": _rrelu,
    "native_dropout": _dropout,
    "_fused_sdp_choice": _quiet,
    "_scaled_dot_product_flash_attention_for_cpu": _quiet,
    "_scaled_dot_product_efficient_attention_backward": _quiet,
    "_scaled_dot_product_cudnn_attention_backward": _quiet,
    "_cudnn_init_dropout_state": _quiet,
    "_scaled_dot_product_flash_attention": _fused("dropout_p"),
    "_scaled_dot_product_efficient_attention": _fused("dropout_p"),
    "_scaled_dot_product_cudnn_attention": _fused("dropout_p"),
    "_scaled_dot_product_fused_attention_overrideable": _fused("dropout_p"),
    "_cudnn_rnn": _fused("dropout"),
}
