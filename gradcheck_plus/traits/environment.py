"""Traits of what surrounds the forward and the backward."""

from collections.abc import Callable

from gradcheck_plus.traits.facts import Facts
from gradcheck_plus.traits.trait import CHECKPOINT, CHECKPOINT_DOCS, SPLIT, Trait

#: What parts of a backward in two passes meet.
SPLIT_CODE = "torch.distributed.pipelining source: _backward.py"


def _hook(name: str) -> Callable[[Facts], bool]:
    return lambda f: name in f.environment.hooks


def _second_backward(f: Facts) -> bool:
    schedule = f.environment.schedule
    return any(schedule.count(str(n)) > 1 for n in range(f.environment.forwards))


TABLE = (
    Trait(
        "eval",
        "evaluation mode",
        lambda f: not f.environment.train,
        "NVIDIA/TransformerEngine#72, facebookresearch/fairscale#709",
    ),
    Trait(
        "float64",
        "everything is float64",
        lambda f: f.program.dtype == "float64",
        "pytorch/pytorch#8175",
        clashes=("autocast-bfloat16", "autocast-float16"),
    ),
    Trait(
        "autocast-bfloat16",
        "autocast to bfloat16 around the forward only",
        lambda f: f.environment.autocast == "bfloat16",
        "NVIDIA/TransformerEngine#791",
    ),
    Trait(
        "autocast-float16",
        "autocast to float16 around the forward only",
        lambda f: f.environment.autocast == "float16",
        "pytorch/pytorch#87979",
        clashes=("autocast-bfloat16",),
    ),
    Trait(
        "draw-before",
        "the caller draws random numbers before the first call",
        lambda f: f.program.segments[0].draws > 0,
        "pytorch/pytorch#14518",
    ),
    Trait(
        "draw-between",
        "the caller draws random numbers between two calls",
        lambda f: any(s.draws for s in f.program.segments[1:]),
        "pytorch/pytorch#14518",
        needs=("many-segments",),
    ),
    Trait(
        "draw-after",
        "the caller draws random numbers before the backward",
        lambda f: f.environment.draws_after > 0,
        "allenai/OLMo#702",
    ),
    Trait(
        "existing-grad",
        "`.grad` is there before the backward",
        lambda f: f.environment.existing_grad,
        "pytorch/pytorch#185331",
    ),
    Trait(
        "second-backward",
        "two backwards over one graph",
        _second_backward,
        "openai/guided-diffusion#144",
        kinds=CHECKPOINT,
    ),
    Trait(
        "two-forwards",
        "a second forward before the first backward",
        lambda f: "FF" in f.environment.schedule,
        "facebookresearch/fairscale#617, pytorch/pytorch#139404",
        needs=("accumulation",),
    ),
    Trait(
        "accumulation",
        "a second forward and backward before gradients are cleared",
        lambda f: f.environment.forwards > 1,
        "NVIDIA/TransformerEngine#3437",
    ),
    Trait(
        "parameter-changed",
        "a parameter is changed in place between forward and backward",
        lambda f: f.environment.changes_parameter,
        CHECKPOINT_DOCS,
        quiet=True,
    ),
    Trait(
        "reference-raises",
        "plain autograd itself may raise",
        lambda f: f.environment.changes_parameter,
        "torch.autograd mechanics: in-place correctness checks",
        drawn=False,
    ),
    Trait("parameter-hook", "tensor hooks on parameters", _hook("parameter"), "pytorch/pytorch#81296"),
    Trait("input-hook", "tensor hooks on inputs", _hook("input"), "pytorch/pytorch#185331", kinds=CHECKPOINT),
    Trait(
        "post-accumulate-hook",
        "post-accumulate-grad hooks on parameters",
        _hook("post-accumulate"),
        "pytorch/pytorch#144530",
    ),
    Trait("forward-hook", "forward hooks on modules", _hook("forward"), CHECKPOINT_DOCS),
    Trait("backward-hook", "full backward hooks on modules", _hook("backward"), "pytorch/pytorch#598"),
    Trait("output-hook", "tensor hooks on what stages return", _hook("output"), SPLIT_CODE, kinds=SPLIT),
    Trait(
        "delayed-weights",
        "the gradients of parameters are taken later than those of inputs",
        lambda f: f.environment.weights != "",
        "Qi et al., Zero Bubble Pipeline Parallelism (2023)",
        kinds=SPLIT,
    ),
    Trait(
        "reordered-weights",
        "the gradients of parameters are taken in another order than those of inputs",
        lambda f: f.environment.weights in ("reversed", "stages"),
        "Qi et al., Zero Bubble Pipeline Parallelism (2023)",
        kinds=SPLIT,
        needs=("delayed-weights",),
    ),
    Trait(
        "reversed-parameters",
        "parameters are listed in reverse",
        lambda f: f.environment.reversed_parameters,
        SPLIT_CODE,
        kinds=SPLIT,
    ),
    Trait(
        "repeated-input",
        "the inputs of a stage list a tensor twice",
        lambda f: f.environment.repeated_input,
        SPLIT_CODE,
        kinds=SPLIT,
    ),
)
