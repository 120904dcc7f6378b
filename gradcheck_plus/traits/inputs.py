"""Traits of what a region is given."""

from gradcheck_plus.case import Constant
from gradcheck_plus.case.point import NON_LEAF_LAYOUTS
from gradcheck_plus.case.trees import names, walk
from gradcheck_plus.traits.facts import Facts
from gradcheck_plus.traits.trait import Trait


def _none_input(f: Facts) -> bool:
    leaves = (leaf for s in f.regions for tree in s.inputs for _, leaf in walk(tree))
    passed = any(not p.tensor and p.constant is None for p in f.passed)
    return passed or any(isinstance(leaf, Constant) and leaf.value is None for leaf in leaves)


def _keyword(f: Facts) -> bool:
    return any(s.kwargs for s in f.regions)


def _scalar(f: Facts) -> bool:
    given = any(p.tensor and not p.spec.rank for p in f.passed)
    return given or any(f.tensor(name) and not f.specs[name].rank for _, name in f.outputs)


TABLE = (
    Trait(
        "nested-input",
        "an argument is a dict, list, tuple or another container",
        lambda f: f.input_container(),
        "facebookresearch/fairscale#701",
    ),
    Trait(
        "namedtuple-input",
        "an argument holds a namedtuple",
        lambda f: f.input_container("namedtuple"),
        "facebookresearch/fairscale#1148",
        needs=("nested-input",),
    ),
    Trait(
        "dataclass-input",
        "an argument holds a dataclass",
        lambda f: f.input_container("dataclass"),
        "pytorch/pytorch#124725",
        needs=("nested-input",),
    ),
    Trait("kwarg-tensor", "a tensor, or another value, is passed by keyword", _keyword, "NVIDIA/Megatron-LM#4765"),
    Trait(
        "python-value",
        "a plain Python value is passed",
        lambda f: any(not p.tensor for p in f.passed),
        "torchgpipe.checkpoint documentation",
    ),
    Trait("none-input", "`None` is passed", _none_input, "facebookresearch/fairscale#1148"),
    Trait(
        "integer-input",
        "an integer tensor is passed",
        lambda f: any(p.spec.dtype == "int64" for p in f.passed),
        "deepspeedai/DeepSpeed#4479",
    ),
    Trait(
        "boolean-input",
        "a boolean tensor is passed",
        lambda f: any(p.spec.dtype == "bool" for p in f.passed),
        "deepspeedai/DeepSpeed#3895",
    ),
    Trait(
        "mixed-requires-grad",
        "of the floating inputs some require grad and some do not",
        lambda f: len({p.spec.requires_grad for p in f.floating}) > 1,
        "facebookresearch/fairscale#787, huggingface/transformers#21381",
        clashes=("no-grad-input",),
    ),
    Trait(
        "no-grad-input",
        "no input requires grad",
        lambda f: bool(f.floating) and not any(p.spec.requires_grad for p in f.floating),
        "facebookresearch/fairseq#3583, pytorch/pytorch#7617",
    ),
    Trait(
        "duplicate-input",
        "one tensor is passed twice",
        lambda f: any(p.alias for p in f.passed),
        "tensorflow/tensorflow#36999, pytorch/pytorch#85301",
    ),
    Trait(
        "shared-storage",
        "two inputs are views of one storage",
        lambda f: any(p.share for p in f.passed),
        "NVIDIA/Megatron-LM#6486",
    ),
    Trait(
        "strided-input",
        "an input is transposed, strided or offset in memory",
        lambda f: f.layout("transposed", "strided", "offset"),
        "open-mmlab/mmcv#737",
    ),
    Trait(
        "expanded-input",
        "an input is expanded",
        lambda f: f.layout("expanded", "expanded-view"),
        "pytorch/pytorch#65244",
    ),
    Trait(
        "non-leaf-input",
        "an input is a view or a result of a leaf",
        lambda f: any(p.layout in NON_LEAF_LAYOUTS and p.spec.requires_grad for p in f.floating),
        "PriorLabs/TabPFN#1138",
    ),
    Trait(
        "unused-input",
        "an input on which nothing depends that the function returns",
        lambda f: f.unused_input,
        "pytorch/pytorch#152827",
    ),
    Trait("scalar-value", "an input or an output has no dimension", _scalar, "ar4/deepwave#120"),
    Trait(
        "empty-value",
        "an input has no elements",
        lambda f: any(f.tensor(n) and not f.specs[n].size for s in f.regions for n in names(*s.inputs)),
        "pytorch/pytorch#31515",
        quiet=True,
    ),
    Trait(
        "special-values",
        "an input has zeros, ties, large or tiny values",
        lambda f: any(p.fill != "generic" for p in f.floating),
        "pytorch/pytorch#194699",
        quiet=True,
    ),
    Trait(
        "bfloat16-input",
        "an input is bfloat16",
        lambda f: any(p.spec.dtype == "bfloat16" for p in f.passed),
        "NVIDIA/Megatron-LM#7538",
        clashes=("float64", "autocast-float16"),
    ),
    Trait(
        "reused-input",
        "a second forward finds its inputs in the tensors of the first",
        lambda f: f.environment.reuses_inputs and f.environment.forwards > 1,
        "pytorch/pytorch#185331, allenai/OLMo-core#749",
        needs=("accumulation",),
    ),
)
