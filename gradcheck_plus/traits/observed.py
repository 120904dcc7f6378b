"""Facts of a case, whatever switches led there, that contracts and the exactness rule ask about."""

from gradcheck_plus.case import ModuleProgram
from gradcheck_plus.traits.facts import Facts
from gradcheck_plus.traits.trait import CHECKPOINT, CHECKPOINT_DOCS, SPLIT, Trait


def _hook_on_tied(f: Facts) -> bool:
    hooked = bool({"parameter", "post-accumulate"} & set(f.environment.hooks))
    return hooked and any(len(uses if f.case.plan.inner else set(uses)) > 1 for uses in f.homes.values())


#: Operations whose kernels call others that autocast casts.
_CALLING = ("bilinear", "functional_bilinear")


def _autocast_inside(f: Facts) -> bool:
    return bool(f.environment.autocast) and any(s.operation in _CALLING for s, _ in f.operations)


TABLE = (
    Trait(
        "region-without-grad-input",
        "no input of a region requires grad",
        lambda f: f.region_without_grad_input,
        "pytorch/pytorch#7617",
        drawn=False,
    ),
    Trait(
        "region-without-grad-output",
        "no output of a region requires grad",
        lambda f: f.region_without_grad_output,
        CHECKPOINT_DOCS,
        drawn=False,
    ),
    Trait(
        "hook-on-tied-parameter",
        "a parameter that segments, or modules that are wrapped, share has a hook",
        _hook_on_tied,
        "pytorch/pytorch#81296, deepspeedai/DeepSpeed#988",
        drawn=False,
    ),
    Trait(
        "off-input-path",
        "a stage returns what is made of parameters and of no input that requires grad",
        lambda f: f.off_input_path,
        "torch.distributed.pipelining source: _backward.py",
        kinds=SPLIT,
        drawn=False,
    ),
    Trait(
        "hook-on-unreached-input",
        "an input that receives no gradient has a hook",
        lambda f: "input" in f.environment.hooks and f.unreached_input,
        "pytorch/pytorch#12631",
        kinds=CHECKPOINT,
        drawn=False,
    ),
    Trait(
        "summed-across-cut",
        "a gradient sums three contributions or more, from both sides of a cut",
        lambda f: f.summed_across_cut,
        drawn=False,
        inexact=True,
    ),
    Trait(
        "free-strides",
        "a value of other than standard strides, which what crosses a cut need not keep",
        lambda f: f.free_strides,
        drawn=False,
        inexact=True,
    ),
    Trait(
        "shared-cast",
        "autocast may cast an input of a region once or once a use",
        lambda f: f.shared_cast,
        "torch.amp documentation",
        drawn=False,
        inexact=True,
    ),
    Trait(
        "other-kernel",
        "an operation that takes another kernel without grad mode",
        lambda f: any(o.other_kernel for _, o in f.operations),
        drawn=False,
        inexact=True,
    ),
    Trait(
        "autocast-inside",
        "autocast reaches what the kernel of an operation calls",
        _autocast_inside,
        "pytorch/pytorch#85043",
        drawn=False,
    ),
    Trait(
        "own-module",
        "the module is the user's own, and what it does inside is not known",
        lambda f: isinstance(f.program, ModuleProgram),
        drawn=False,
        inexact=True,
    ),
)
