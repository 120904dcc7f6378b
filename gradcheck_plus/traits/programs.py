"""Traits of the function itself: its operations, its parameters, and how it is cut."""

from collections.abc import Callable

from gradcheck_plus.traits.facts import Facts
from gradcheck_plus.traits.trait import CHECKPOINT, CHECKPOINT_DOCS, FUNCTION, Trait


def _operation(trait: str) -> Callable[[Facts], bool]:
    return lambda f: trait in f.operation_traits


def _tied(f: Facts) -> bool:
    return any(len(uses) > 1 for name, uses in f.homes.items() if name not in f.buffers)


def _tied_across(f: Facts) -> bool:
    return any(len(set(uses)) > 1 for name, uses in f.homes.items() if name not in f.buffers)


def _frozen(f: Facts) -> bool:
    own = any(not p.trainable for p in f.program.parameters if not p.buffer)
    return own or any(s.frozen for s in f.program.statements)


TABLE = (
    Trait(
        "dropout",
        "dropout in one of its variants",
        _operation("dropout"),
        "openai/guided-diffusion#167, allenai/OLMo-core#828",
        clashes=("eval",),
    ),
    Trait("random", "noise is drawn inside", _operation("random"), "pytorch/pytorch#14253", clashes=("eval",)),
    Trait(
        "random-activation",
        "an activation with a random slope",
        _operation("random-activation"),
        "pytorch/pytorch#193671",
        clashes=("eval",),
    ),
    Trait(
        "batch-norm",
        "batch norm, whose statistics every forward updates",
        lambda f: "batch-norm" in f.operation_traits and f.environment.train,
        "pytorch/pytorch#96136, pytorch/pytorch#62471",
    ),
    Trait(
        "counted-calls",
        "a module counts its calls",
        _operation("counted-calls"),
        "pytorch/pytorch#96136",
    ),
    Trait(
        "state-in-result",
        "a module's result depends on state that every forward changes",
        lambda f: "state-in-result" in f.operation_traits and f.environment.train,
        CHECKPOINT_DOCS,
    ),
    Trait(
        "inner-checkpoint",
        "torch's own checkpoint inside the function",
        _operation("inner-checkpoint"),
        "pytorch/pytorch#90105",
    ),
    Trait("recurrent", "a recurrent layer", _operation("recurrent"), "pytorch/pytorch#5878"),
    Trait("nested-module", "a module inside a module", _operation("nested-module"), "pytorch/pytorch#82203"),
    Trait("in-place", "a value is changed in place", _operation("in-place"), "pytorch/pytorch#36383"),
    Trait(
        "in-place-view",
        "a view of what was made inside is changed in place",
        _operation("in-place-view"),
        "pytorch/pytorch#36383",
    ),
    Trait("view", "a view inside the function", _operation("view"), "pytorch/pytorch#26546"),
    Trait(
        "several-results",
        "an operation with several results",
        _operation("several-results"),
        "pytorch/pytorch#170277",
    ),
    Trait(
        "custom-function",
        "a `torch.autograd.Function` inside",
        _operation("custom-function"),
        "pytorch/pytorch#170277",
    ),
    Trait(
        "several-gradients",
        "several results of a `torch.autograd.Function` receive a gradient",
        lambda f: f.several_gradients,
        "pytorch/pytorch#170277",
        needs=("custom-function", "several-results"),
    ),
    Trait("control-flow", "a branch that depends on a value", _operation("control-flow"), "pytorch/pytorch#152827"),
    Trait(
        "low-precision",
        "a cast to bfloat16 inside",
        _operation("low-precision"),
        "NVIDIA/Megatron-LM#7538",
        clashes=("float64",),
    ),
    Trait("detached-value", "a value is detached inside", _operation("detached-value"), CHECKPOINT_DOCS),
    Trait(
        "integer-value",
        "an integer or boolean tensor is made inside",
        _operation("integer-value"),
        "pytorch/pytorch#37680",
    ),
    Trait(
        "no-grad-island",
        "a statement runs under `torch.no_grad`",
        lambda f: any(s.no_grad for s, _ in f.operations),
        CHECKPOINT_DOCS,
    ),
    Trait("tied-parameter", "a parameter is used twice", _tied, "pytorch/pytorch#180952"),
    Trait(
        "tied-across-segments",
        "segments share a parameter",
        _tied_across,
        "NVIDIA/TransformerEngine#3437, pytorch/pytorch#51931",
        needs=("tied-parameter", "many-segments"),
    ),
    Trait("frozen-parameter", "a parameter does not require grad", _frozen, "huggingface/transformers#42494"),
    Trait(
        "unused-parameter",
        "a parameter that nothing uses",
        lambda f: any(not f.homes[p.name] for p in f.program.parameters),
        "pytorch/pytorch#83107",
    ),
    Trait(
        "direct-parameter",
        "a parameter is used without a layer",
        lambda f: any(f.homes[p.name] for p in f.program.parameters if not p.buffer),
        "NVIDIA/Megatron-LM#5789",
        drawn=False,
    ),
    Trait(
        "direct-buffer",
        "a buffer is used without a layer",
        lambda f: bool(f.buffers),
        "radixark/miles_diffusion#15",
    ),
    Trait(
        "fan-out",
        "a value is used twice",
        lambda f: any(n > 1 for name, n in f.operand_uses.items() if name not in f.homes),
        "pytorch/pytorch#170277",
        drawn=False,
    ),
    Trait(
        "sequential-region",
        "what is called is a bare `nn.Sequential`",
        lambda f: any(s.form == "sequential" for s in f.regions),
        "NVIDIA/Megatron-LM#290",
    ),
    Trait(
        "function-region",
        "what is called is a function that holds its module",
        lambda f: any(s.form == "function" for s in f.regions),
        "pytorch/pytorch#7617",
        kinds=FUNCTION,
    ),
    Trait(
        "many-segments",
        "two calls or more, one after another",
        lambda f: len(f.program.segments) > 1,
        "pytorch/pytorch#14253",
    ),
    Trait(
        "plain-segment",
        "a segment beside the region is called directly",
        lambda f: len(f.regions) < len(f.program.segments),
        "pytorch/pytorch#33962",
        kinds=CHECKPOINT,
        needs=("many-segments",),
    ),
    Trait(
        "skip-connection",
        "a value passes a segment by",
        lambda f: any(used - made > 1 for _, made, used in f.crossings if made >= 0),
        "pytorch/pytorch#110775, pytorch/pytorch#127964",
        drawn=False,
    ),
    Trait(
        "container-rebound",
        "the caller puts other tensors into a container that it passed",
        lambda f: any(s.rebinds for s in f.regions),
        "pytorch/pytorch#178568",
        kinds=CHECKPOINT,
        needs=("nested-input",),
    ),
)
