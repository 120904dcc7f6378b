"""Backwards of a pipeline stage as a user's project has them."""

from typing import Any

from torch import Tensor

from gradcheck_plus.support import plain_stage_backward


def plain(stage_output: Any, output_grads: Any, input_values: Any) -> tuple[Tensor | None, ...]:
    """Leave it to autograd."""
    gradients: tuple[Tensor | None, ...] = plain_stage_backward(stage_output, output_grads, input_values)  # type: ignore[no-untyped-call]
    return gradients


def forgets(stage_output: Any, output_grads: Any, input_values: Any) -> tuple[None, ...]:
    """Leave the inputs of the stage without gradients."""
    return tuple(None for _ in plain(stage_output, output_grads, input_values))
