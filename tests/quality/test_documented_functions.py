"""The check is silent on the Functions that torch's own documentation shows, and on functions of torch with kinks."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.autograd import Function

import gradcheck_plus as gp


class LinearFunction(Function):
    """A linear map that looks at which gradients are needed."""

    @staticmethod
    def forward(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
        output = x.mm(weight.t())
        if bias is not None:
            output += bias.unsqueeze(0).expand_as(output)
        return output

    @staticmethod
    def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        x, weight, bias = ctx.saved_tensors
        grad_x = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_x = grad_output.mm(weight)
        if ctx.needs_input_grad[1]:
            grad_weight = grad_output.t().mm(x)
        if bias is not None and ctx.needs_input_grad[2]:
            grad_bias = grad_output.sum(0)
        return grad_x, grad_weight, grad_bias


class MulConstant(Function):
    """An argument that is no tensor."""

    @staticmethod
    def forward(ctx: Any, tensor: torch.Tensor, constant: float) -> torch.Tensor:
        ctx.constant = constant
        return tensor * constant

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output * ctx.constant, None


class Exp(Function):
    """A result that is saved."""

    @staticmethod
    def forward(ctx: Any, i: torch.Tensor) -> torch.Tensor:
        result = i.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        (result,) = ctx.saved_tensors
        return grad_output * result


class Cube(Function):
    """An intermediate that is returned, so that the second derivative is right."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> Any:
        dx = 3 * x**2
        ctx.save_for_backward(x, dx)
        return x**3, dx

    @staticmethod
    def backward(ctx: Any, grad_output: Any, grad_dx: Any) -> Any:
        x, dx = ctx.saved_tensors
        return grad_output * dx + grad_dx * 6 * x


class Inplace(Function):
    """An argument that is written to, and says so."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        x.add_(1)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad_output: Any) -> Any:
        return grad_output


def linear() -> list[torch.Tensor]:
    return [torch.randn(2, 3), torch.randn(4, 3), torch.randn(4)]


def row() -> list[torch.Tensor]:
    return [torch.randn(2, 3)]


#: Functions of torch with kinks, ties and jumps; `benchmarks/torch_functions.py` has all.
KINKED = (torch.relu, torch.floor, torch.sort, torch.cumprod, torch.nn.functional.softmax)

CASES: list[tuple[Any, Callable[[], Any], Any]] = [
    (LinearFunction, linear, None),
    (LinearFunction, linear, torch.nn.functional.linear),
    (MulConstant, lambda: [torch.randn(2, 3), 2.5], torch.mul),
    (Exp, lambda: [torch.randn(2, 3)], torch.exp),
    (Cube, lambda: [torch.randn(3)], None),
    (Inplace, lambda: [torch.randn(3)], None),
    *((op, (lambda: [*row(), -1]) if op in KINKED[3:] else row, None) for op in KINKED),
]


@pytest.mark.parametrize(("op", "inputs", "reference"), CASES)
def test_documented_and_kinked_functions_are_right(op: Any, inputs: Any, reference: Any) -> None:
    result = gp.check_function(op, inputs=inputs, reference=reference, settings=gp.Settings(max_examples=30, seed=9))

    assert [fault.message for fault in result.faults] == []
    assert result.verdict == "match"
