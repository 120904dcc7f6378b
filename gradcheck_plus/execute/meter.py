"""What an execution costs, apart from time: how often modules run, and how many bytes are kept for the backward."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from gradcheck_plus.record import storage


class Meter:
    """Measures one execution.

    Attributes:
        calls: how often the modules of segments were run, recomputations included.
        saved: bytes of the tensors that autograd saved in the forwards, each memory counted once. What a subject saves under
            saved-tensor hooks of its own, or keeps without autograd, is not seen.
    """

    def __init__(self) -> None:
        self.calls = 0
        self._kept: dict[int, torch.Tensor] = {}

    @property
    def saved(self) -> int:
        """See the class."""
        return sum(t.untyped_storage().nbytes() for t in self._kept.values())

    def watch(self, model: nn.Module) -> None:
        """Count the calls of the modules that a model holds."""
        for module in model.children():
            module.register_forward_pre_hook(self._called)

    def _called(self, *_: Any) -> None:
        self.calls += 1

    @contextlib.contextmanager
    def forward(self) -> Iterator[None]:
        """Count what autograd saves meanwhile."""
        with torch.autograd.graph.saved_tensors_hooks(self._save, lambda tensor: tensor):
            yield

    def _save(self, tensor: torch.Tensor) -> torch.Tensor:
        self._kept.setdefault(storage(tensor), tensor)
        return tensor
