"""The correct backward of a pipeline stage: one backward over the stage's graph, then the gradients of its inputs.

Each fault of the ``stage_*`` files overrides one of its methods. It excuses itself from nothing: an output that receives `None`
contributes nothing, and an input that nothing comes to has no gradient.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from gradcheck_plus.zoo.planted import Make

#: Outputs, each with its cotangent.
Pairs = list[tuple[Tensor, Tensor | None]]


class StageBackward:
    """Called as ``stage_backward(stage_output, output_grads, input_values)``; returns the gradients of the inputs."""

    def __call__(self, stage_output: Any, output_grads: Any, input_values: Sequence[Any]) -> tuple[Tensor | None, ...]:
        """Take the gradients of a stage."""
        pairs = self.pairs(stage_output, output_grads)
        self.differentiate(self.taking_part(pairs), input_values)
        gradients = tuple(self.gradients(input_values))
        self.release(pairs)
        return gradients

    def pairs(self, output: Any, grad: Any) -> Pairs:
        """Return the tensors of an output, each with its cotangent."""
        if isinstance(output, Tensor):
            return [(output, grad)]
        return [pair for key in self.keys(output) for pair in self.pairs(output[key], None if grad is None else grad[key])]

    def keys(self, container: Any) -> Sequence[Any]:
        """Return how to reach the children of a container; none for what is no container."""
        if isinstance(container, dict):
            return list(container)
        return range(len(container)) if isinstance(container, list | tuple) else ()

    def taking_part(self, pairs: Pairs) -> Pairs:
        """Return the outputs that a gradient comes from: where a scalar receives nothing, autograd takes 1."""
        return [(o, g) for o, g in pairs if o.requires_grad and (g is not None or o.numel() == 1)]

    def differentiate(self, pairs: Pairs, inputs: Sequence[Any]) -> None:
        """Fill the `.grad` of the inputs, and add to those of the parameters."""
        if pairs:
            torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs])

    def gradients(self, inputs: Sequence[Any]) -> list[Tensor | None]:
        """Return the gradients of the inputs, and clear their `.grad` for the next microbatch."""
        taken = [value.grad if isinstance(value, Tensor) else None for value in inputs]
        for value in inputs:
            if isinstance(value, Tensor):
                value.grad = None
        return taken

    def release(self, pairs: Pairs) -> None:
        """Let the outputs go: nothing is left to do."""


#: The correct one.
twin = StageBackward()
plant = Make("stage-backward", twin, "strict").plant
