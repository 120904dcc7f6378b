"""Functions whose backward is wrong, one for each named check, and what each should be."""

from collections.abc import Callable
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.autograd import Function

from gradcheck_plus.zoo.planted import Make


def vector() -> list[Tensor]:
    """One vector of ordinary values."""
    return [torch.tensor([0.5, -1.25, 2.0, 0.75])]


def matrix() -> list[Tensor]:
    """One matrix of ordinary values."""
    return [torch.tensor([[0.5, -1.25, 2.0], [0.75, 1.5, -0.25]])]


def product() -> list[Tensor]:
    """Two matrices that can be multiplied."""
    return [torch.tensor([[0.5, -1.25, 2.0], [0.75, 1.5, -0.25]]), torch.tensor([[1.0, 0.5], [-0.5, 2.0], [0.25, -1.5]])]


# values -----------------------------------------------------------------------------------------------------------------


class RowMaximum(Function):
    """Gives every one of several equal maxima the whole gradient, where autograd shares it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the largest element of each row."""
        y = x.amax(-1)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        x, y = ctx.saved_tensors
        return (x == y[..., None]) * g[..., None]


def row_maximum(x: Tensor) -> Tensor:
    """Return the largest element of each row."""
    return x.amax(-1)


# jacobian ---------------------------------------------------------------------------------------------------------------


class Reversal(Function):
    """Does not turn the gradient round, as it does the values."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the elements in reverse order."""
        return x.flip(0).sin()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        return g


def reversal(x: Tensor) -> Tensor:
    """Return the sines of the elements in reverse order."""
    return x.flip(0).sin()


# linearity --------------------------------------------------------------------------------------------------------------


class SineLoss(Function):
    """Takes its cotangent to be 1, as it is at the end of a loss that nobody scales."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the sum of sines."""
        ctx.save_for_backward(x.cos())
        return x.sin().sum()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        (cosine,) = ctx.saved_tensors
        return cosine * torch.ones_like(g)


def sine_loss(x: Tensor) -> Tensor:
    """Return the sum of sines."""
    return x.sin().sum()


# masks ------------------------------------------------------------------------------------------------------------------


class MatrixProduct(Function):
    """Returns the gradients that are needed, one after the other, and not each in the place of its argument."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Any:
        """Return the product."""
        ctx.save_for_backward(x, w)
        return x * w.sum()

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradients of `x` and `w`."""
        x, w = ctx.saved_tensors
        found = []
        if ctx.needs_input_grad[0]:
            found.append(g * w.sum())
        found.append((g * x).sum().expand(w.shape))
        return found[0], found[-1] if ctx.needs_input_grad[0] else None


def scaled_by_sum(x: Tensor, w: Tensor) -> Tensor:
    """Return a matrix times the sum of another."""
    return x * w.sum()


# cotangents -------------------------------------------------------------------------------------------------------------


class SineAndCosine(Function):
    """Asks for no zeros in the place of missing cotangents, and does not look for them."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the sine and the cosine."""
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(x)
        return x.sin(), x.cos()

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return the gradient of `x`."""
        (x,) = ctx.saved_tensors
        return grads[0] * x.cos() - grads[1] * x.sin()


def sine_and_cosine(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return the sine and the cosine."""
    return x.sin(), x.cos()


class Doubled(Function):
    """Works in the memory of its cotangent, which others may still need."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return twice the argument."""
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        return g.mul_(2)


def doubled(x: Tensor) -> Tensor:
    """Return twice the argument."""
    return x * 2


# inputs and state -------------------------------------------------------------------------------------------------------


class HalfSquare(Function):
    """Keeps its gradient in the memory of its argument, by a way that autograd does not see."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return half the sum of squares."""
        ctx.save_for_backward(x.clone())
        y = 0.5 * (x * x).sum()
        x.data.mul_(0.5)
        return y

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        (x,) = ctx.saved_tensors
        return g * x


def half_square(x: Tensor) -> Tensor:
    """Return half the sum of squares."""
    return 0.5 * (x * x).sum()


class Square(Function):
    """Keeps its argument on `ctx`, where nobody watches it."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the square."""
        ctx.x = x.detach()
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        return 2 * g * ctx.x


class CachedSquare(Function):
    """Keeps every argument that it was ever given."""

    seen: ClassVar[list[Tensor]] = []

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the square."""
        CachedSquare.seen.append(x)
        del CachedSquare.seen[:-50]  # so that a test that plants this does not fill the memory
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        (x,) = ctx.saved_tensors
        return 2 * g * x


def square(x: Tensor) -> Tensor:
    """Return the square."""
    return x * x


class WarmingUp(Function):
    """Gives another gradient at every second call."""

    calls: ClassVar[list[int]] = [0]

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the square."""
        WarmingUp.calls[0] += 1
        ctx.odd = WarmingUp.calls[0] % 2
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        (x,) = ctx.saved_tensors
        return 2 * g * x * (1 + 1e-9 * ctx.odd)


# derivatives of other sorts ---------------------------------------------------------------------------------------------


class WithForwardMode(Function):
    """Forgets a factor in forward mode."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the square."""
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        (x,) = ctx.saved_tensors
        return 2 * g * x

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor) -> Any:
        """Return the tangent of the result."""
        (x,) = ctx.saved_tensors
        return tangents[0] * x


class QuadraticForm(Function):
    """Uses in its backward what its forward computed, which has no graph there."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the square of twice the argument."""
        ctx.middle = x * 2
        return ctx.middle**2

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        return 4 * ctx.middle * g


def quadratic_form(x: Tensor) -> Tensor:
    """Return the square of twice the argument."""
    return (x * 2) ** 2


class ReluAndMask(Function):
    """Returns a mask that asks for a gradient, which it has none of."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return what is positive, and where."""
        mask = (x > 0).to(x.dtype)
        ctx.save_for_backward(mask)
        return x * mask, mask

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        """Return the gradient of `x`."""
        (mask,) = ctx.saved_tensors
        return grads[0] * mask


def relu_and_mask(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return what is positive, and where."""
    mask = (x > 0).to(x.dtype)
    return x * mask, mask


class Bias(Function):
    """Returns a gradient for every row, and leaves it to the engine to add them up."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, b: Tensor) -> Any:
        """Return rows with a bias."""
        return x + b

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradients of `x` and `b`."""
        return g, g


def with_bias(x: Tensor, b: Tensor) -> Tensor:
    """Return rows with a bias."""
    return x + b


def rows_and_bias() -> list[Tensor]:
    """Rows, and a bias for them."""
    return [*matrix(), torch.tensor([0.5, 1.0, -0.75])]


def plant(check: str, faulty: Any, twin: Callable[..., Any], inputs: Callable[[], Any], source: str) -> None:
    """Plant what the check of this name must find in a function, from these inputs."""
    Make("function", twin, "function", check, inputs).plant(f"{check}-function", faulty, source=source)


plant("values", RowMaximum, row_maximum, matrix, "pytorch/pytorch#36353")
plant("jacobian", Reversal, reversal, vector, "pytorch/pytorch#59615")
plant("linearity", SineLoss, sine_loss, vector, "NVIDIA/TransformerEngine#2139, HawkAaron/warp-transducer#23")
plant("masks", MatrixProduct, scaled_by_sum, product, "NVIDIA/Megatron-LM#548, NVIDIA/apex#1517")
plant("missing-cotangents", SineAndCosine, sine_and_cosine, vector, "pytorch/pytorch#12631, pytorch/pytorch#58511")
plant("cotangent-layouts", Doubled, doubled, vector, "pytorch/pytorch#195210")
plant("inputs-unmodified", HalfSquare, half_square, vector, "linkedin/Liger-Kernel#272, #343")
plant("saved-state", Square, square, vector, "dmlc/dgl#1060")
plant("leak", CachedSquare, square, vector, "pytorch/pytorch#25340")
plant("repeatability", WarmingUp, square, vector, "pytorch/pytorch#194869")
plant("adjoint", WithForwardMode, square, vector, "pytorch/pytorch#198017")
plant("double-backward", QuadraticForm, quadratic_form, vector, "pytorch/pytorch#58509, #76185, #99523")
plant("nondifferentiable", ReluAndMask, relu_and_mask, vector, "pytorch/pytorch#14875")
plant("returned-metadata", Bias, with_bias, rows_and_bias, "pytorch/pytorch#65244, #1787")
