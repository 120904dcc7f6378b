"""Facts of a case, whatever switches led there, that contracts and the exactness rule ask about."""

from gradcheck_plus.case import ModuleProgram
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.traits.bits import free_strides, shared_cast, summed_across_cut
from gradcheck_plus.traits.facts import Facts
from gradcheck_plus.traits.trait import CHECKPOINT, CHECKPOINT_DOCS, WRAPPER, Trait


def _hook_on_tied(f: Facts) -> bool:
    hooked = bool({"parameter", "post-accumulate"} & set(f.environment.hooks))
    return hooked and any(len(uses if f.case.plan.inner else set(uses)) > 1 for uses in f.homes.values())


def _hook_on_unreached_parameter(f: Facts) -> bool:
    """Is a parameter hooked that a statement uses, though no gradient comes back to any statement that does?"""
    if not {"parameter", "post-accumulate"} & set(f.environment.hooks):
        return False
    own = {p.name for p in f.program.parameters if not p.buffer}
    used, reached = set(), set()
    for s in f.program.statements:
        names = own & {*s.operands} | ({s.module} if CATALOGUE[s.operation].trainable else set())
        used |= names
        reached |= names if any(r.name in f.reached for r in s.results) else set()
    return bool(used - reached)


#: Operations whose kernels call others that autocast casts.
_CALLING = ("bilinear", "functional_bilinear", "affine_grid")


def _autocast_inside(f: Facts) -> bool:
    return bool(f.environment.autocast) and any(s.operation in _CALLING for s, _ in f.operations)


TABLE = (
    Trait(
        "region-without-grad-input",
        "no input of a region, or of a module that is wrapped inside one, requires grad",
        lambda f: f.region_without_grad_input or f.wrap_without_grad_input,
        "pytorch/pytorch#7617",
        drawn=False,
    ),
    Trait(
        "wrapped-result-changed",
        "what a module that is wrapped inside a region returns is changed in place",
        lambda f: f.wrapped_result_changed,
        "pytorch/pytorch#26546",
        kinds=WRAPPER,
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
        "hook-on-unreached-parameter",
        "a parameter that is used and receives no gradient has a hook",
        _hook_on_unreached_parameter,
        "pytorch/pytorch#12631",
        drawn=False,
    ),
    Trait(
        "summed-across-cut",
        "a gradient sums three contributions or more, from both sides of a cut",
        summed_across_cut,
        "torch documentation: numerical accuracy",
        drawn=False,
        inexact=True,
    ),
    Trait(
        "free-strides",
        "a value of other than standard strides, which what crosses a cut need not keep",
        free_strides,
        "torch.autograd documentation: default gradient layouts",
        drawn=False,
        inexact=True,
    ),
    Trait(
        "shared-cast",
        "autocast may cast an input of a region once or once a use",
        shared_cast,
        "torch.amp documentation",
        drawn=False,
        inexact=True,
    ),
    Trait(
        "other-kernel",
        "an operation that takes another kernel without grad mode",
        lambda f: any(o.other_kernel for _, o in f.operations),
        "pytorch/pytorch#128209",
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
