"""Checkpoints that lose or change something on the way in: inputs forgotten, cut off, saved wrongly, counted twice."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from typing_extensions import override

from gradcheck_plus.zoo.function_checkpoint import FunctionCheckpoint, Region, plant
from gradcheck_plus.zoo.trees import Rebuild, flattened, mapped


class FrozenInputsDropParameters(FunctionCheckpoint):
    """Nothing that requires grad goes in beside the inputs, so that parameters get no gradient where all inputs are frozen."""

    @override
    def anchor(self, region: Region) -> Tensor:
        return torch.empty(0, requires_grad=any(region.flags))


class OnlyFirstInput(FunctionCheckpoint):
    """Made for one tensor of hidden states: only the first gradient is returned."""

    @override
    def gradients(self, region: Region, inputs: Sequence[Tensor]) -> list[Tensor | None]:
        gradients = super().gradients(region, inputs)
        first = next((i for i, g in enumerate(gradients) if g is not None), -1)
        return [g if i == first else None for i, g in enumerate(gradients)]


class KeywordsDetached(FunctionCheckpoint):
    """Tensors that are passed by keyword get no gradient."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        return super().__call__(function, *args, **mapped(Tensor.detach, kwargs))


class NestedInputsDetached(FunctionCheckpoint):
    """Tensors inside containers get no gradient: only arguments that are tensors are looked at."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        bare = [arg if isinstance(arg, Tensor) else mapped(Tensor.detach, arg) for arg in args]
        return super().__call__(function, *bare, **kwargs)


class ContainersByReference(FunctionCheckpoint):
    """The recompute reads the caller's own containers, with what the caller has put there since."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.arguments = (args, kwargs)
        return super().__call__(function, *args, **kwargs)

    @override
    def region(self, function: Callable[..., Any], rebuild: Rebuild, given: Sequence[Tensor]) -> Region:
        region = super().region(function, rebuild, given)
        region.notes["arguments"] = self.arguments
        return region

    @override
    def unpacked(self, region: Region, saved: Sequence[Tensor]) -> Sequence[Tensor]:
        return flattened(region.notes["arguments"])[0]


class SavedInFloat32(FunctionCheckpoint):
    """Inputs are saved in float32 to halve their memory, and those of float64 come back rounded."""

    @override
    def packed(self, tensor: Tensor) -> Tensor:
        return tensor.float() if tensor.dtype == torch.float64 else tensor

    @override
    def region(self, function: Callable[..., Any], rebuild: Rebuild, given: Sequence[Tensor]) -> Region:
        region = super().region(function, rebuild, given)
        region.notes["dtypes"] = [t.dtype for t in given]
        return region

    @override
    def unpacked(self, region: Region, saved: Sequence[Tensor]) -> Sequence[Tensor]:
        return [t.to(dtype) for t, dtype in zip(saved, region.notes["dtypes"], strict=True)]


class DuplicateInputDoubled(FunctionCheckpoint):
    """A tensor that is passed twice is cut off once, and the whole of its gradient is returned for both."""

    @override
    def region(self, function: Callable[..., Any], rebuild: Rebuild, given: Sequence[Tensor]) -> Region:
        region = super().region(function, rebuild, given)
        ids = [id(t) for t in given]
        region.notes["first"] = [ids.index(i) for i in ids]
        return region

    @override
    def cut_off(self, region: Region, tensors: Sequence[Tensor]) -> list[Tensor]:
        leaves = super().cut_off(region, tensors)
        return [leaves[first] for first in region.notes["first"]]


class InputsNotCutOff(FunctionCheckpoint):
    """The recompute runs on the caller's own tensors, so that its backward goes on into what made them."""

    @override
    def cut_off(self, region: Region, tensors: Sequence[Tensor]) -> list[Tensor]:
        return list(tensors)


class InputsMadeToRequireGrad(FunctionCheckpoint):
    """The caller's own tensors are made to require grad where none does, so that the region is not cut off."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        floating = [t for t in flattened((args, kwargs))[0] if t.is_floating_point()]
        if not any(t.requires_grad for t in floating):
            for t in floating:
                t.requires_grad_()
        return super().__call__(function, *args, **kwargs)


frozen_inputs_drop_parameters = FrozenInputsDropParameters()
only_first_input = OnlyFirstInput()
keywords_detached = KeywordsDetached()
nested_inputs_detached = NestedInputsDetached()
containers_by_reference = ContainersByReference()
saved_in_float32 = SavedInFloat32()
duplicate_input_doubled = DuplicateInputDoubled()
inputs_not_cut_off = InputsNotCutOff()
inputs_made_to_require_grad = InputsMadeToRequireGrad()

plant(
    "frozen-inputs-drop-parameters",
    frozen_inputs_drop_parameters,
    trigger="region-without-grad-input",
    source="pytorch/pytorch#7617, facebookresearch/fairseq#3583, huggingface/transformers#21381",
)
plant("only-first-input", only_first_input, source="axolotl-ai-cloud/axolotl#1528, inferred from its design")
plant("keywords-detached", keywords_detached, trigger="kwarg-tensor", source="NVIDIA/Megatron-LM#4765")
plant("nested-inputs-detached", nested_inputs_detached, trigger="nested-input", source="facebookresearch/fairscale#701")
plant(
    "containers-by-reference",
    containers_by_reference,
    trigger="container-rebound",
    source="PriorLabs/TabPFN#1138, pytorch/pytorch#178568",
)
plant("saved-in-float32", saved_in_float32, trigger="float64 many-segments", source="NVIDIA/Megatron-LM#7538", statements=2)
plant(
    "duplicate-input-doubled", duplicate_input_doubled, trigger="duplicate-input", source="a neighbour of pytorch/pytorch#81296"
)
plant("inputs-not-cut-off", inputs_not_cut_off, source="ooples/AiDotNet.Tensors#645")
plant(
    "inputs-made-to-require-grad",
    inputs_made_to_require_grad,
    trigger="no-grad-input | region-without-grad-input",
    source="huggingface/transformers#42494, huggingface/transformers#23170",
)
