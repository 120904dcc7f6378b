"""A fault of a function names its node, and the line that calls it."""

from typing import Any

import pytest
import torch
from torch import Tensor

import gradcheck_plus as gp


class Kinked(torch.autograd.Function):
    """Wrong at exactly zero."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.save_for_backward(x)
        return x.clamp(min=0)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * (ctx.saved_tensors[0] >= 0)


class Halved(Kinked):
    """Wrong everywhere, which needs no reference to be seen."""

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads[0] * (ctx.saved_tensors[0] > 0) / 2


@pytest.mark.parametrize(
    ("function", "reference", "kind"),
    [(Kinked, torch.relu, "incoming-differs"), (Halved, None, "rule-differs")],
)
def test_the_function_is_named_with_and_without_a_reference(function: Any, reference: Any, kind: str) -> None:
    def op(x: Tensor) -> Tensor:
        y: Tensor = function.apply(x)
        return y

    settings = gp.Settings(max_examples=100, seed=3)
    found = gp.check_function(op, inputs=[torch.linspace(-1, 1, 4)], reference=reference, settings=settings)

    divergence = found.faults[0].first_divergence
    assert divergence is not None
    assert (divergence.node, divergence.kind) == (f"{function.__name__}Backward", kind)
    if reference is None:
        assert divergence.source_line == "y: Tensor = function.apply(x)"
