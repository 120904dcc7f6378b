"""Functions that are wrong in some surroundings only: for other sizes, dtypes, devices or uses, or inside something else."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from gradcheck_plus.zoo.function_faults import matrix, plant, product, square, vector


def complex_vector() -> list[Tensor]:
    """One vector of complex numbers."""
    return [torch.tensor([0.5 + 1.0j, -1.25 + 0.5j, 2.0 - 0.25j])]


# sizes, uses, dtypes ----------------------------------------------------------------------------------------------------


class StableSquare(Function):
    """Divides its cotangent by the largest element of it, of which there may be none."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the square."""
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        (x,) = ctx.saved_tensors
        k = g.abs().max().clamp(min=1e-30)
        return 2 * (g / k) * x * k


class Flattened(Function):
    """Returns a view of its argument, which nobody may then change in place."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the elements in one dimension."""
        ctx.shape = x.shape
        return x.view(-1)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        return g.reshape(ctx.shape)


def flattened(x: Tensor) -> Tensor:
    """Return the elements in one dimension."""
    return x.reshape(-1)


class LowPrecisionProduct(Function):
    """Runs its forward in the dtype of autocast, and its backward in float16 whatever that is."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Any:
        """Return the product."""
        ctx.low = torch.is_autocast_enabled("cpu")
        ctx.save_for_backward(x, w)
        return (x.bfloat16() @ w.bfloat16()).float() if ctx.low else x @ w

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradients of `x` and `w`."""
        x, w = ctx.saved_tensors
        dtype = torch.float16 if ctx.low else x.dtype
        left, right = g.to(dtype) @ w.to(dtype).mT, x.to(dtype).mT @ g.to(dtype)
        return left.to(x.dtype), right.to(w.dtype)


def matrix_product(x: Tensor, w: Tensor) -> Tensor:
    """Return the product."""
    return x @ w


class ComplexSquare(Function):
    """Multiplies by the argument where it should be by its conjugate."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        """Return the square."""
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        (x,) = ctx.saved_tensors
        return 2 * g * x


# inside other things ----------------------------------------------------------------------------------------------------


class OnceOnly(Function):
    """Lets go of what it kept as soon as its backward has run, though it may run again for another leaf."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor) -> Any:
        """Return the product."""
        ctx.kept = (x, w)
        return x @ w

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradients of `x` and `w`."""
        x, w = ctx.kept
        ctx.kept = None
        return g @ w.mT, x.mT @ g


class Batched(Function):
    """Its rule for vmap forgets that the batch comes first."""

    @staticmethod
    def forward(x: Tensor) -> Any:
        """Return the cumulative sums."""
        return x.cumsum(0)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        """Keep nothing."""

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Return the gradient of `x`."""
        return g.flip(0).cumsum(0).flip(0)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int], x: Tensor) -> Any:
        """Return the cumulative sums of a batch."""
        return x.movedim(in_dims[0], 0).cumsum(0), 0


def cumulative_sums(x: Tensor) -> Tensor:
    """Return the cumulative sums."""
    return x.cumsum(0)


def depends_on_compilation(x: Tensor) -> Tensor:
    """Computes something else when it is compiled."""
    return x * 3 if torch.compiler.is_compiling() else x * x


def depends_on_device(x: Tensor) -> Tensor:
    """Computes something else on a GPU."""
    return x * 3 if x.is_cuda else x * x


plant("empty-inputs", StableSquare, square, vector, "pytorch/pytorch#50743")
plant("in-place-results", Flattened, flattened, matrix, "pytorch/pytorch#26546, #31258, #36383")
plant("autocast", LowPrecisionProduct, matrix_product, product, "pytorch/pytorch#87979, #88029")
plant("complex", ComplexSquare, square, complex_vector, "pytorch/pytorch#41857")
plant("checkpoints", OnceOnly, matrix_product, product, "guided-diffusion#144")
plant("transforms", Batched, cumulative_sums, vector, "pytorch/pytorch#90224")
plant("compile", depends_on_compilation, square, vector, "pytorch/pytorch#147995")
plant("devices", depends_on_device, square, vector, "pytorch/pytorch#195210")
