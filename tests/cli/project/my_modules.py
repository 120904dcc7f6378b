"""Modules of a user's own, and sample calls of them."""

import random
import time
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn


@dataclass
class Batch:
    """What a model of the user's takes."""

    x: Tensor
    scale: float = 2.0


@dataclass
class Output:
    """What a model of the user's returns."""

    logits: Tensor
    more: dict[str, Tensor]


class Linear(nn.Module):
    """One layer, of which the others are made."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Any:
        return self.linear(x)


class Normalised(Linear):
    """With batch norm, whose statistics a recompute updates once more."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(3)

    def forward(self, x: Tensor) -> Any:
        return self.norm(self.linear(x))


class Counting(Linear):
    """Another function at every call."""

    calls: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Any:
        self.calls += 1
        return self.linear(x) * self.calls


class DrawsFromPython(Linear):
    """Skips a layer now and then, by a generator that is not torch's."""

    def forward(self, x: Tensor) -> Any:
        return self.linear(x) * random.random()


class KeywordsOnly(Linear):
    """Cannot be called by position."""

    def forward(self, *, x: Tensor) -> Any:  # type: ignore[override]
        return self.linear(x)


class DictOutput(Linear):
    """Returns a dict, nested, with what is no tensor."""

    def forward(self, x: Tensor) -> Any:
        y = self.linear(x)
        return {"y": y, "more": [y.sin(), 3, None]}


class DataclassOutput(Linear):
    """Returns a dataclass."""

    def forward(self, x: Tensor) -> Any:
        y = self.linear(x)
        return Output(y, {"sin": y.sin()})


class TakesBatch(Linear):
    """Looks at the type of what it is passed."""

    def forward(self, batch: Any) -> Any:
        if not isinstance(batch, Batch):
            raise TypeError(f"{type(batch)} is no Batch")
        return self.linear(batch.x) * batch.scale


class Detached(nn.Module):
    """Has nothing to differentiate."""

    def forward(self, x: Tensor) -> Any:
        return x.detach()


class Indices(nn.Module):
    """Has nothing to differentiate either."""

    def forward(self, x: Tensor) -> Any:
        return x.argmax()


class Sleeping(nn.Module):
    """Never returns."""

    def forward(self, x: Tensor) -> Any:
        time.sleep(1000)


instance = Linear()


def makes_nothing() -> None: ...


def raises() -> nn.Module:
    raise RuntimeError("the weights are not here")


# sample calls -----------------------------------------------------------------------------------------------------------


def sample() -> Any:
    return (torch.arange(6.0).reshape(2, 3),)


constant = (torch.arange(6.0).reshape(2, 3),)


def keywords() -> Any:
    return {"x": torch.arange(6.0).reshape(2, 3)}


def both() -> Any:
    return (torch.arange(6.0).reshape(2, 3),), {}


def batch() -> Any:
    return (Batch(torch.arange(6.0).reshape(2, 3)),)


def too_wide() -> Any:
    return (torch.ones(2, 4),)


def text() -> Any:
    return "no call"


def no_data() -> Any:
    raise FileNotFoundError("the data are not here")


def takes_one(x: Any) -> Any:
    return x
