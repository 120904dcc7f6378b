"""Runs of a user's own: what they return has a backward, or they run one."""

import sys
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

NUMBER = 3


class Layer(nn.Module):
    """A layer with something random, and a step of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.dropout, self.down = nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 4)

    def forward(self, x: Tensor) -> Any:
        return x + self.down(self.dropout(self.middle(self.up(x))))

    def middle(self, x: Tensor) -> Any:
        return x.square()


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * grad


class Broken(Layer):
    def middle(self, x: Tensor) -> Any:
        return Square.apply(x)  # type: ignore[no-untyped-call]


class Failing(Square):
    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        raise RuntimeError("not today\nnor tomorrow")


class Raising(Layer):
    def middle(self, x: Tensor) -> Any:
        return Failing.apply(x)  # type: ignore[no-untyped-call]


def _run(layer: nn.Module, **options: Any) -> Any:
    model, x = nn.Sequential(layer, nn.Linear(4, 1)), torch.randn(3, 4, requires_grad=True)
    y = model(x) if not options else model[1](checkpoint(model[0], x, **options))
    return y.mean()


def plain() -> Any:
    return _run(Layer())


def reentrant() -> Any:
    return _run(Layer(), use_reentrant=True)


def nonreentrant() -> Any:
    return _run(Layer(), use_reentrant=False)


def forgetful() -> Any:
    return _run(Layer(), use_reentrant=False, preserve_rng_state=False)


def broken() -> Any:
    return _run(Broken())


def broken_in_checkpoint() -> Any:
    return _run(Broken(), use_reentrant=True)


def raising() -> Any:
    return _run(Raising())


def talking() -> None:
    sys.stdout.write("about to begin\n")
    _run(Layer()).backward()


def zero_over_zero() -> Any:
    x = nn.Linear(2, 2)(torch.ones(1, 2))
    return ((x - x) / (x - x).norm()).sum()


def something_else() -> Any:
    return torch.ones(2, requires_grad=True).exp().sum()


def takes_arguments(x: Tensor, *, scale: float) -> Any:
    return x * scale


def returns_nothing() -> None: ...


def exits() -> None:
    sys.exit(7)


def interrupted() -> None:
    raise KeyboardInterrupt
