"""Stage backwards that take the wrong outputs, or the wrong cotangents for them."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from gradcheck_plus.zoo.stage_backward import Pairs, StageBackward, plant


class FirstOutputOnly(StageBackward):
    """Only the gradient of the first output crosses the boundary."""

    @override
    def taking_part(self, pairs: Pairs) -> Pairs:
        return super().taking_part(pairs)[:1]


class DictSkipped(StageBackward):
    """Outputs are looked for in tuples and lists; a dict is taken for something else and left out."""

    @override
    def keys(self, container: Any) -> Sequence[Any]:
        return () if isinstance(container, dict) else super().keys(container)


class FirstKeyOnly(StageBackward):
    """Of a dict only the first value takes part."""

    @override
    def keys(self, container: Any) -> Sequence[Any]:
        keys = super().keys(container)
        return keys[:1] if isinstance(container, dict) else keys


class DictMatchedByOrder(StageBackward):
    """The cotangents of a dict are matched to its values by their order, not by their keys."""

    @override
    def pairs(self, output: Any, grad: Any) -> Pairs:
        if isinstance(output, dict) and isinstance(grad, dict):
            return super().pairs(list(output.values()), list(grad.values()))
        return super().pairs(output, grad)


class NothingFiltered(StageBackward):
    """Every output is handed to the engine, which refuses those that do not require grad."""

    @override
    def taking_part(self, pairs: Pairs) -> Pairs:
        return pairs


class DuplicateOutputOnce(StageBackward):
    """Cotangents are kept by output, so that a tensor that is returned twice receives only the second."""

    @override
    def taking_part(self, pairs: Pairs) -> Pairs:
        return list({id(o): (o, g) for o, g in super().taking_part(pairs)}.values())


class ScaledByOutputs(StageBackward):
    """Cotangents are divided by the number of outputs, as for a mean over microbatches."""

    @override
    def taking_part(self, pairs: Pairs) -> Pairs:
        taking = super().taking_part(pairs)
        return [(o, None if g is None else g / len(taking)) for o, g in taking]


class OutputsDetachedInPlace(StageBackward):
    """Outputs are detached in place to let the graph go, which autograd refuses for views."""

    @override
    def release(self, pairs: Pairs) -> None:
        for output, _ in pairs:
            output.detach_()


class OutputsFreedEarly(StageBackward):
    """The memory of the outputs is given up before the backward, though the last operation may have saved its result."""

    @override
    def differentiate(self, pairs: Pairs, inputs: Sequence[Any]) -> None:
        for output, _ in pairs:
            output.data.zero_()
        super().differentiate(pairs, inputs)


first_output_only = FirstOutputOnly()
dict_skipped = DictSkipped()
first_key_only = FirstKeyOnly()
dict_matched_by_order = DictMatchedByOrder()
nothing_filtered = NothingFiltered()
duplicate_output_once = DuplicateOutputOnce()
scaled_by_outputs = ScaledByOutputs()
outputs_detached_in_place = OutputsDetachedInPlace()
outputs_freed_early = OutputsFreedEarly()

plant(
    "first-output-only",
    first_output_only,
    trigger="several-outputs | duplicate-output",
    source="deepspeedai/DeepSpeed#5518, deepspeedai/DeepSpeed#969",
)
plant("dict-skipped", dict_skipped, trigger="nested-output", source="pytorch/PiPPy#1032, pytorch/pytorch#124958")
plant("first-key-only", first_key_only, trigger="nested-output", source="pytorch/pytorch#124958")
plant("dict-matched-by-order", dict_matched_by_order, trigger="reversed-keys", source="pytorch/pytorch#124958")
plant(
    "nothing-filtered",
    nothing_filtered,
    trigger="non-grad-output | integer-output | none-cotangent",
    source="pytorch/PiPPy#1029, deepspeedai/DeepSpeed#3895, deepspeedai/DeepSpeed#4479, deepspeedai/DeepSpeed#7357",
)
plant(
    "duplicate-output-once", duplicate_output_once, trigger="duplicate-output", source="a neighbour of pytorch/pytorch#124958"
)
plant(
    "scaled-by-outputs",
    scaled_by_outputs,
    trigger="several-outputs | duplicate-output",
    source="torch.distributed.pipelining documentation: scale_grads",
)
plant(
    "outputs-detached-in-place",
    outputs_detached_in_place,
    trigger="view-output | passthrough-output | backward-hook",
    source="pytorch/pytorch#142229, pytorch/pytorch#142237",
)
plant(
    "outputs-freed-early",
    outputs_freed_early,
    source="NVIDIA/Megatron-LM#6486, NVIDIA/Megatron-LM#6168, NVIDIA/apex#1279",
)
