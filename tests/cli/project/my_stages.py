"""Backwards of a pipeline stage as a user's project has them."""

from typing import Any

from torch import Tensor

from gradcheck_plus.support import plain_backward_input, plain_backward_weight, plain_stage_backward


def plain(stage_output: Any, output_grads: Any, input_values: Any) -> tuple[Tensor | None, ...]:
    """Leave it to autograd."""
    gradients: tuple[Tensor | None, ...] = plain_stage_backward(stage_output, output_grads, input_values)  # type: ignore[no-untyped-call]
    return gradients


def forgets(stage_output: Any, output_grads: Any, input_values: Any) -> tuple[None, ...]:
    """Leave the inputs of the stage without gradients."""
    return tuple(None for _ in plain(stage_output, output_grads, input_values))


def plain_input(outputs: Any, grads: Any, inputs: Any, weights: Any) -> Any:
    """Leave the first of two passes to autograd."""
    return plain_backward_input(outputs, grads, inputs, weights)  # type: ignore[no-untyped-call]


def plain_weight(weights: Any, param_groups: Any) -> None:
    """Leave the second of two passes to autograd."""
    plain_backward_weight(weights, param_groups)  # type: ignore[no-untyped-call]


def idle_weight(weights: Any, param_groups: Any) -> None:
    """Leave the parameters without gradients."""
