"""Stage backwards that hand back the wrong gradients of the inputs."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from gradcheck_plus.zoo.stage_backward import StageBackward, plant


class InputGradNotCleared(StageBackward):
    """The `.grad` of an input stays, and a buffer that the next microbatch arrives in adds to it."""

    @override
    def gradients(self, inputs: Sequence[Any]) -> list[Tensor | None]:
        return [value.grad if isinstance(value, Tensor) else None for value in inputs]


class UnusedInputRejected(StageBackward):
    """An input that no gradient comes to makes the stage raise."""

    @override
    def gradients(self, inputs: Sequence[Any]) -> list[Tensor | None]:
        gradients = super().gradients(inputs)
        for value, gradient in zip(inputs, gradients, strict=True):
            if isinstance(value, Tensor) and value.requires_grad and gradient is None:
                raise RuntimeError("an input has no gradient to send upstream")
        return gradients


class UnusedInputZeros(StageBackward):
    """An input that no gradient comes to is sent zeros, so that whatever made it seems to take part."""

    @override
    def gradients(self, inputs: Sequence[Any]) -> list[Tensor | None]:
        gradients = super().gradients(inputs)
        return [
            torch.zeros_like(value) if g is None and isinstance(value, Tensor) and value.requires_grad else g
            for value, g in zip(inputs, gradients, strict=True)
        ]


class ReturnedAndZeroed(StageBackward):
    """The buffer that is handed upstream is the one that is then zeroed for the next microbatch."""

    @override
    def gradients(self, inputs: Sequence[Any]) -> list[Tensor | None]:
        gradients = super().gradients(inputs)
        for gradient in gradients:
            if gradient is not None:
                gradient.zero_()
        return gradients


class GradientsOutOfOrder(StageBackward):
    """Gradients come in the order of their sizes, not in that of the inputs."""

    @override
    def gradients(self, inputs: Sequence[Any]) -> list[Tensor | None]:
        return sorted(super().gradients(inputs), key=lambda g: 0 if g is None else g.numel())


class NoneLeftOut(StageBackward):
    """Inputs without a gradient are left out of what is returned, and all that follow are taken for others."""

    @override
    def gradients(self, inputs: Sequence[Any]) -> list[Tensor | None]:
        some = [g for g in super().gradients(inputs) if g is not None]
        return [*some, *[None] * (len(inputs) - len(some))]


input_grad_not_cleared = InputGradNotCleared()
unused_input_rejected = UnusedInputRejected()
unused_input_zeros = UnusedInputZeros()
returned_and_zeroed = ReturnedAndZeroed()
gradients_out_of_order = GradientsOutOfOrder()
none_left_out = NoneLeftOut()

plant("input-grad-not-cleared", input_grad_not_cleared, source="allenai/OLMo-core#749, pytorch/pytorch#185331")
plant("unused-input-rejected", unused_input_rejected, source="pytorch/pytorch#152827, pytorch/pytorch#153484")
plant("unused-input-zeros", unused_input_zeros, source="pytorch/pytorch#12631")
plant("returned-and-zeroed", returned_and_zeroed, source="deepspeedai/DeepSpeed#4128, pytorch/pytorch#181723")
plant("gradients-out-of-order", gradients_out_of_order, source="a neighbour of NVIDIA/TransformerEngine#1138")
plant("none-left-out", none_left_out, source="a neighbour of pytorch/pytorch#152827")
