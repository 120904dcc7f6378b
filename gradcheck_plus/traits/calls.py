"""Traits of a varied call of a user's function: how it differs from the sample call."""

from gradcheck_plus.traits.facts import Facts
from gradcheck_plus.traits.trait import CALL, Trait

#: What each variation does, with ``{x}`` for the argument that it is done to, and who got it wrong.
PHRASES: dict[str, tuple[str, str]] = {
    # values
    "other-sample": ("the sample call is drawn with other random numbers", ""),
    "larger-values": ("{x} is larger", ""),
    "tiny-values": ("{x} is tiny", ""),
    "negative-values": ("{x} is negative", ""),
    "zero-values": ("elements of {x} are 0", "pytorch/pytorch#18619"),
    "tied-values": ("elements of {x} tie", "pytorch/pytorch#36353"),
    "integer-values": ("{x} has whole numbers", "torch/nn#1180"),
    "beyond-float16": ("{x} is beyond the range of float16", "pytorch/pytorch#87979"),
    "non-finite-values": ("elements of {x} are not finite", ""),
    # shapes
    "other-size": ("{x} has another size", "marin-community/levanter#449"),
    "size-one": ("{x} has a dimension of size 1", "pytorch/pytorch#65244"),
    "size-zero": ("{x} is empty", "pytorch/pytorch#50743"),
    # dtypes
    "float32-inputs": ("inputs are float32", ""),
    "low-precision-inputs": ("inputs are bfloat16", ""),
    "complex-inputs": ("inputs are complex", ""),
    "under-autocast": ("it runs under autocast", "pytorch/pytorch#88029"),
    # layouts
    "transposed-argument": ("{x} is transposed in memory", "MrNeRF/optimized-fused-ssim#1"),
    "strided-argument": ("{x} has gaps in memory", "pytorch/pytorch#69997"),
    "expanded-argument": ("{x} is expanded", "pytorch/pytorch#30303"),
    "offset-argument": ("{x} begins later in its memory", ""),
    # indices and masks
    "border-indices": ("{x} has the largest or the smallest index only", ""),
    "repeated-indices": ("an index occurs more than once in {x}", "pytorch/pytorch#146299"),
    "uniform-mask": ("{x} masks everything or nothing", ""),
    # sharing and surroundings
    "frozen-argument": ("{x} does not require grad", "NVIDIA/Megatron-LM#548"),
    "same-tensor-twice": ("{x} is passed twice", "pytorch/pytorch#183604"),
    "used-elsewhere": ("{x} is also used by an ordinary operation", "NVIDIA/TransformerEngine#545"),
    "main-grad": ("{x} has a main_grad", "NVIDIA/apex#1297"),
    "producer-keeps-output": ("{x} comes from an operation that saved its own output", "linkedin/Liger-Kernel#272"),
    # uses of the result
    "summed-result": ("its result is summed", "pytorch/pytorch#195210"),
    "averaged-result": ("its result is averaged", "NVIDIA/TransformerEngine#2139"),
    "transposed-result": ("its result is transposed", "Dao-AILab/flash-attention#355"),
    "stacked-result": ("its result is stacked with another", "facebookresearch/xformers#282"),
    "sliced-result": ("only a slice of its result is used", ""),
    "row-summed-result": ("the rows of its result are summed", "pytorch/pytorch#195210"),
    "result-changed-in-place": ("its result is changed in place", "pytorch/pytorch#26546"),
    "one-output-used": ("only one of its outputs is used", "pytorch/pytorch#58511"),
    "two-calls": ("it is called twice before the backward", "dmlc/dgl#1060"),
    "two-backwards": ("the backward runs twice", "guided-diffusion#144"),
    "called-in-a-loop": ("it is called in a loop", ""),
}


def _has(name: str) -> Trait:
    phrase, source = PHRASES[name]

    def when(f: Facts) -> bool:
        return f.case.call is not None and name in f.case.call.names

    return Trait(name, phrase.format(x="an argument"), when, source, kinds=CALL)


TABLE = tuple(_has(name) for name in PHRASES)
