"""Traits of what a region returns."""

from gradcheck_plus.case import Constant
from gradcheck_plus.case.trees import names, walk
from gradcheck_plus.traits.facts import Facts
from gradcheck_plus.traits.trait import CHECKPOINT, CHECKPOINT_DOCS, Trait


def _several(f: Facts) -> bool:
    return any(len({n for n in names(s.output) if f.differentiable(n)}) > 1 for s in f.regions)


def _twice(f: Facts) -> bool:
    return any(len(returned := names(s.output)) > len(set(returned)) for s in f.regions)


TABLE = (
    Trait("several-outputs", "two differentiable outputs or more", _several, "deepspeedai/DeepSpeed#5518", drawn=False),
    Trait(
        "nested-output",
        "an output is a dict, a list or nested",
        lambda f: f.nested_output,
        "facebookresearch/fairscale#1148, pytorch/PiPPy#1032",
    ),
    Trait(
        "mixed-output",
        "a differentiable tensor stands bare beside a container with another one",
        lambda f: f.mixed_output,
        "pytorch/pytorch#124725, PriorLabs/TabPFN#1138",
        drawn=False,
    ),
    Trait(
        "namedtuple-output",
        "an output holds a namedtuple",
        lambda f: f.output_container("namedtuple"),
        "pytorch/pytorch#124725",
        needs=("nested-output",),
    ),
    Trait(
        "dataclass-output",
        "an output holds a dataclass",
        lambda f: f.output_container("dataclass"),
        "pytorch/pytorch#124725",
        kinds=CHECKPOINT,
        needs=("nested-output",),
    ),
    Trait(
        "constant-output",
        "an output holds `None` or a plain Python value",
        lambda f: any(isinstance(leaf, Constant) for s in f.regions for _, leaf in walk(s.output)),
        "pytorch/PiPPy#1032",
    ),
    Trait(
        "integer-output",
        "an output is an integer or boolean tensor",
        lambda f: any(f.tensor(n) and not f.specs[n].floating for _, n in f.outputs),
        "pytorch/PiPPy#1029",
        drawn=False,
    ),
    Trait(
        "non-grad-output",
        "a floating output does not require grad",
        lambda f: any(f.specs[n].floating and not f.differentiable(n) for _, n in f.outputs),
        "facebookresearch/fairscale#787, deepspeedai/DeepSpeed#3895",
        drawn=False,
    ),
    Trait("passthrough-output", "an input is returned", lambda f: f.passthrough, CHECKPOINT_DOCS),
    Trait("duplicate-output", "one tensor is returned twice", _twice),
    Trait(
        "view-output",
        "an output is a view",
        lambda f: any(n in f.views for _, n in f.outputs),
        "pytorch/pytorch#142229",
        drawn=False,
    ),
    Trait(
        "saved-output",
        "autograd keeps an output for the backward",
        lambda f: any(n in f.makers and f.makers[n].saves_result for _, n in f.outputs),
        "NVIDIA/Megatron-LM#6486, NVIDIA/apex#1279",
        drawn=False,
    ),
    Trait(
        "outer-use",
        "an output is used by a later segment and by the loss",
        lambda f: f.outer_use,
        needs=("many-segments",),
    ),
)
