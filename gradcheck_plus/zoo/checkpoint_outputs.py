"""Checkpoints that treat what a region returns wrongly: the nested, the one without grad, the one that receives nothing."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from gradcheck_plus.zoo.function_checkpoint import FunctionCheckpoint, Pairs, plant
from gradcheck_plus.zoo.trees import mapped, open_container


class AllOutputsAssumedGrad(FunctionCheckpoint):
    """Every floating output is handed to the engine, those that do not require grad with zeros, and the engine refuses them."""

    @override
    def pairs(self, outputs: Sequence[Tensor], received: Sequence[Tensor | None]) -> Pairs:
        others = [(o, torch.zeros_like(o)) for o in outputs if o.is_floating_point() and not o.requires_grad]
        return super().pairs(outputs, received) + others


class NestedOutputsDetached(FunctionCheckpoint):
    """Tensors in a container inside the output come back detached; only those at its top take part in autograd."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        output = super().__call__(function, *args, **kwargs)
        opened = open_container(output)
        if opened is None:
            return output
        children, make = opened
        return make([child if isinstance(child, Tensor) else mapped(Tensor.detach, child) for child in children])


class DataclassOutputsDetached(FunctionCheckpoint):
    """Tensors in a dataclass come back detached: it is not among the containers that are opened."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return _closed(super().__call__(function, *args, **kwargs))


def _closed(tree: Any) -> Any:
    opened = open_container(tree)
    if opened is None:
        return tree
    if not isinstance(tree, dict | list | tuple):
        return mapped(Tensor.detach, tree)
    children, make = opened
    return make([_closed(child) for child in children])


class OutputsAlwaysRequireGrad(FunctionCheckpoint):
    """Every floating output requires grad, whether any gradient can come from it or not."""

    @override
    def without_grad(self, outputs: Sequence[Tensor]) -> list[bool]:
        return [False for _ in outputs]


class NothingBecomesZeros(FunctionCheckpoint):
    """An output that receives nothing receives zeros, and so do inputs and parameters that nothing should come to."""

    materialises = True


all_outputs_assumed_grad = AllOutputsAssumedGrad()
nested_outputs_detached = NestedOutputsDetached()
dataclass_outputs_detached = DataclassOutputsDetached()
outputs_always_require_grad = OutputsAlwaysRequireGrad()
nothing_becomes_zeros = NothingBecomesZeros()

plant(
    "all-outputs-assumed-grad",
    all_outputs_assumed_grad,
    trigger="non-grad-output",
    source="pytorch/pytorch#45934, pytorch/pytorch#37266, Nerogar/OneTrainer#549",
)
plant(
    "nested-outputs-detached",
    nested_outputs_detached,
    trigger="nested-output",
    source="facebookresearch/fairscale#1148, PriorLabs/TabPFN#1138",
)
plant("dataclass-outputs-detached", dataclass_outputs_detached, trigger="dataclass-output", source="pytorch/pytorch#124725")
plant(
    "outputs-always-require-grad",
    outputs_always_require_grad,
    trigger="non-grad-output",
    source="facebookresearch/fairscale#787, OpenBMB/BMTrain#8",
)
plant(
    "nothing-becomes-zeros",
    nothing_becomes_zeros,
    trigger="none-cotangent",
    source="pytorch/pytorch#12631, pytorch/pytorch#58511",
)
