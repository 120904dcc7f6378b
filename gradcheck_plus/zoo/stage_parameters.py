"""Stage backwards that get the gradients of the parameters wrong."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from gradcheck_plus.zoo import graphs
from gradcheck_plus.zoo.stage_backward import Pairs, StageBackward, plant


class WeightGradAssigned(StageBackward):
    """Gradients of parameters are assigned for each microbatch, where they should be added up."""

    @override
    def differentiate(self, pairs: Pairs, inputs: Sequence[Any]) -> None:
        for leaf in graphs.leaves(o for o, _ in pairs):
            leaf.grad = None
        super().differentiate(pairs, inputs)


class WeightGradsNeverTaken(StageBackward):
    """Only the gradients of the inputs are taken; those of the parameters are put off to a step that this schedule has not."""

    @override
    def differentiate(self, pairs: Pairs, inputs: Sequence[Any]) -> None:
        wanted = [value for value in inputs if isinstance(value, Tensor) and value.requires_grad]
        if pairs and wanted:
            torch.autograd.backward([o for o, _ in pairs], [g for _, g in pairs], inputs=wanted)


class OneBackwardAnOutput(StageBackward):
    """Each output has a backward of its own, so that hooks of a parameter that several depend on fire for each."""

    @override
    def differentiate(self, pairs: Pairs, inputs: Sequence[Any]) -> None:
        for output, grad in pairs:
            torch.autograd.backward(output, grad, retain_graph=True)


weight_grad_assigned = WeightGradAssigned()
weight_grads_never_taken = WeightGradsNeverTaken()
one_backward_an_output = OneBackwardAnOutput()

plant(
    "weight-grad-assigned",
    weight_grad_assigned,
    trigger="existing-grad | accumulation | tied-across-segments",
    source="NVIDIA/TransformerEngine#3437",
)
plant("weight-grads-never-taken", weight_grads_never_taken, source="deepspeedai/Megatron-DeepSpeed#442")
plant(
    "one-backward-an-output",
    one_backward_an_output,
    trigger="several-outputs | duplicate-output",
    source="pytorch/pytorch#81296, deepspeedai/DeepSpeed#988",
)
