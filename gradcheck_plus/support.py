"""What printed programs use: values, parameters, containers and custom Functions.

A standalone repro carries the source of what it uses from here, so each definition needs nothing but the imports at the top.
"""

import collections
import dataclasses
import math

import torch
import torch.nn.functional as F
from torch import nn

__all__ = ["F", "collections", "dataclasses", "math", "nn", "torch"]


DEVICE = "cpu"
DTYPE = torch.float32


def values(shape, seed, dtype=None):
    """Distinct odd multiples of 1/32 between -2 and 2: the same on every machine, exact in every floating dtype."""
    i = torch.arange(math.prod(shape), device=DEVICE)
    return (((i * (2 * i + 2 * seed + 29) + 17 * seed) % 64 * 2 - 63) / 32).reshape(shape).to(dtype or DTYPE)


def integers(shape, seed, dtype=torch.int64):
    """Small non-negative integers, zeros and repeats among them."""
    return (values(shape, seed) * 3).abs().floor().to(dtype)


def one_hot(shape, seed, dtype=None):
    """One element is 1, the rest are 0."""
    n = math.prod(shape)
    return (torch.arange(n, device=DEVICE) == seed % max(n, 1)).reshape(shape).to(dtype or DTYPE)


def fill(module):
    """Give every parameter values that are the same on every machine."""
    with torch.no_grad():
        for seed, parameter in enumerate(module.parameters()):
            parameter.copy_(values(parameter.shape, seed + 50, parameter.dtype) / 2)


def draw(count):
    """Draw some random numbers, as a caller may between two calls."""
    torch.rand(count, device=DEVICE)


Named1 = collections.namedtuple("Named1", ["first"])
Named2 = collections.namedtuple("Named2", ["first", "second"])
Named3 = collections.namedtuple("Named3", ["first", "second", "third"])


@dataclasses.dataclass
class Data1:
    first: object


@dataclasses.dataclass
class Data2:
    first: object
    second: object


@dataclasses.dataclass
class Data3:
    first: object
    second: object
    third: object


class Swish(torch.autograd.Function):
    """x * sigmoid(x)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return grad * s * (1 + x * (1 - s))


class PowerPair(torch.autograd.Function):
    """(x * w, x * w ** 2): two results of the same shape."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w, x * w * w

    @staticmethod
    def backward(ctx, grad_first, grad_second):
        x, w = ctx.saved_tensors
        return grad_first * w + grad_second * w * w, grad_first * x + grad_second * 2 * x * w


class ExpAndIndex(torch.autograd.Function):
    """(exp(x / 4), index of the largest element): the second result is not differentiable."""

    @staticmethod
    def forward(ctx, x):
        result, index = torch.exp(x / 4), x.argmax()
        ctx.save_for_backward(result)
        ctx.mark_non_differentiable(index)
        return result, index

    @staticmethod
    def backward(ctx, grad, _):
        (result,) = ctx.saved_tensors
        return grad * result / 4
