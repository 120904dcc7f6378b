"""The one-call checks, and the primitive for a user's own Hypothesis tests. All of them run in this process.

A subject that hangs or kills the process takes this process along; the command line runs each check in one of its own.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import hypothesis
import msgspec
import torch
from torch import nn

from gradcheck_plus.campaign.campaign import Campaign
from gradcheck_plus.campaign.function_runner import FunctionRunner
from gradcheck_plus.campaign.judging import Verdict, decide
from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.campaign.runner import LocalRunner, check_device
from gradcheck_plus.case import Case
from gradcheck_plus.errors import GradientMismatch, InvalidArgument
from gradcheck_plus.execute.targets import importable, load, named
from gradcheck_plus.functions.drawn import decode
from gradcheck_plus.functions.judging import Tested
from gradcheck_plus.options import OPTIONS
from gradcheck_plus.report.files import save
from gradcheck_plus.results import CheckResult, Costs, Counts, Excused, Pairs, mismatch_text
from gradcheck_plus.settings import Settings
from gradcheck_plus.subject import PAIR, Kind, Subject
from gradcheck_plus.subjects import MODULE_SUBJECTS, SUBJECTS, contract_of, subject

_REMEMBERED = 256


def check_checkpoint(
    checkpoint: Callable[..., Any], *, contract: str = "", settings: Settings | None = None, name: str = ""
) -> CheckResult:
    """Check that an activation checkpoint leaves behind what plain autograd leaves behind.

    Args:
        checkpoint: called as ``checkpoint(function, *args, **kwargs)``.
        contract: the name of a contract or the path of one; by default what recomputing must cost.
        settings: how many cases, which seed, and so on; by default `Settings()`.
        name: how reports name it; by default its own name.

    Returns:
        The result; its ``verdict`` is ``match``, ``fault`` or ``inconclusive``.

    Raises:
        InvalidArgument: it cannot be called that way, or a setting cannot be used.

    Example:
        >>> import gradcheck_plus as gp
        >>> def checkpoint(function, *args, **kwargs):
        ...     return function(*args, **kwargs)
        >>> gp.check_checkpoint(checkpoint, settings=gp.Settings(max_examples=20)).verdict
        'match'
    """
    return _checked("checkpoint", checkpoint, contract, settings, name)


def check_wrapper(
    wrap: Callable[..., Any], *, contract: str = "", settings: Settings | None = None, name: str = ""
) -> CheckResult:
    """Check that wrapped modules leave behind what the modules themselves leave behind.

    Whole regions of random programs are wrapped, modules inside them too, and some twice. The model must also look as before:
    the same keys in its `state_dict`, the same parameters, and modes and flags that reach what is inside.

    Args:
        wrap: called as ``wrap(module)``; returns the module to use in its place, which may be the same one.
        contract: the name of a contract or the path of one; by default ``wrapper``.
        settings: how many cases, which seed, and so on.
        name: how reports name it.

    Returns:
        The result; its ``verdict`` is ``match``, ``fault`` or ``inconclusive``.

    Raises:
        InvalidArgument: it cannot be called that way, or a setting cannot be used.

    Example:
        >>> import gradcheck_plus as gp
        >>> gp.check_wrapper(lambda module: module, settings=gp.Settings(max_examples=20)).verdict
        'match'
    """
    return _checked("wrapper", wrap, contract, settings, name)


def check_stage_backward(
    stage_backward: Callable[..., Any], *, contract: str = "", settings: Settings | None = None, name: str = ""
) -> CheckResult:
    """Check that a pipeline stage's backward leaves behind what plain autograd leaves behind.

    Args:
        stage_backward: called as ``stage_backward(stage_output, output_grads, input_values)``; returns one gradient, or
            `None`, for each input value, and accumulates into the `.grad` of parameters.
        contract: the name of a contract or the path of one.
        settings: how many cases, which seed, and so on.
        name: how reports name it.

    Returns:
        The result; its ``verdict`` is ``match``, ``fault`` or ``inconclusive``.

    Raises:
        InvalidArgument: it cannot be called that way, or a setting cannot be used.
    """
    return _checked("stage-backward", stage_backward, contract, settings, name)


def check_split_backward(
    backward_input: Callable[..., Any],
    backward_weight: Callable[..., Any],
    *,
    contract: str = "",
    settings: Settings | None = None,
    name: str = "",
) -> CheckResult:
    """Check that a pipeline stage's backward in two passes leaves behind what plain autograd leaves behind.

    Args:
        backward_input: called as ``backward_input(stage_outputs_or_loss, output_grads, input_values, weights)``, with flat
            lists of tensors and an iterator of parameters; returns one gradient, or `None`, for each input value, and
            whatever the second pass needs.
        backward_weight: called as ``backward_weight(weights, param_groups)``, at once or later; accumulates into the `.grad` of
            parameters.
        contract: the name of a contract or the path of one; by default ``split-backward``.
        settings: how many cases, which seed, and so on.
        name: how reports name it; by default the name of the first.

    Returns:
        The result; its ``verdict`` is ``match``, ``fault`` or ``inconclusive``.

    Raises:
        InvalidArgument: one of them cannot be called that way, or a setting cannot be used.

    Example:
        >>> import gradcheck_plus as gp
        >>> from gradcheck_plus.support import plain_backward_input, plain_backward_weight
        >>> settings = gp.Settings(max_examples=20)
        >>> gp.check_split_backward(plain_backward_input, plain_backward_weight, settings=settings).verdict
        'match'
    """
    return _checked("split-backward", (backward_input, backward_weight), contract, settings, name)


def check_module(
    factory: Callable[[], nn.Module],
    *,
    inputs: Callable[[], Any] | tuple[Any, ...] | dict[str, Any],
    subjects: Iterable[str] | None = None,
    settings: Settings | None = None,
) -> CheckResult:
    """Check that a module of one's own can be checkpointed: under every built-in checkpoint, or the named ones.

    Flags, environments and cotangents are drawn around one sample call.

    Args:
        factory: makes a new module; called for every execution, always with the same random numbers.
        inputs: a sample call, or what makes one: a tuple of arguments, a dict of keyword arguments, or the pair of both.
        subjects: names of built-in checkpoints, as ``gradcheck-plus list subjects`` shows them.
        settings: how many cases for each, which seed, and so on.

    Returns:
        One result for all of them; each fault names its subject.

    Raises:
        InvalidArgument: the module cannot be made or called, or has nothing to differentiate; or a name is not known.

    Example:
        >>> import torch, gradcheck_plus as gp
        >>> make = lambda: torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh())
        >>> result = gp.check_module(make, inputs=(torch.ones(2, 3),), settings=gp.Settings(max_examples=10))
        >>> result.verdict
        'match'
    """
    chosen = [SUBJECTS[name] for name in (subjects or MODULE_SUBJECTS)]
    module, sample = named(factory), named(inputs)
    results = []
    for entry in chosen:
        if entry.kind != "checkpoint":
            raise InvalidArgument(f"`subject`={entry.name!r} is no checkpoint. Write some of {', '.join(MODULE_SUBJECTS)}.")
        own = settings or Settings()
        search = Search(kind="checkpoint", settings=own, target=entry.subject.target, module=module, inputs=sample)
        results.append(_run(search, entry.subject))
    return merged(results)


def check_function(
    op: Any,
    *,
    inputs: Any = None,
    reference: Callable[..., Any] | None = None,
    settings: Settings | None = None,
) -> CheckResult:
    """Check the backward of a function: a `torch.autograd.Function`, its ``apply``, a custom op, a module or any callable.

    Around one ordinary sample call everything is varied that may stay valid: values, which arguments require grad, layouts,
    sizes,
    dtypes, what else is done with the arguments, and how the result is used. Each case makes one of the named checks.

    Args:
        op: the function.
        inputs: a sample call, or what makes one: a list or tuple of arguments, a dict of keyword arguments, or the pair of
            both; or a Hypothesis strategy that draws such a call. Without it the function is called with as many 3 by 3
            matrices as its signature asks for.
        reference: a function of the same arguments, whose gradients autograd knows. Without it gradients are compared with
            central differences in float64.
        settings: how many cases, which seed, which checks, and so on.

    Returns:
        The result; its ``verdict`` is ``match``, ``fault`` or ``inconclusive``.

    Raises:
        InvalidArgument: the function cannot be called, refuses the sample call, or has nothing to differentiate.

    Example:
        >>> import torch, gradcheck_plus as gp
        >>> gp.check_function(torch.sin, inputs=[torch.randn(3)], settings=gp.Settings(max_examples=20)).verdict
        'match'
    """
    target = named(op)
    sample = "" if inputs is None else named(inputs)
    search = Search(
        kind="function",
        settings=settings or Settings(),
        target=target,
        inputs=sample,
        reference="" if reference is None else named(reference),
    )
    return _finished(search, Campaign(search, FunctionRunner(search)))


def merged(results: list[CheckResult]) -> CheckResult:
    """Return one result for several checks of one module: the worst verdict, and everything that each found."""
    order = ("fault", "inconclusive", "match")
    worst = min(results, key=lambda r: order.index(r.verdict))
    counts, costs = Counts(), Costs()
    traits: dict[str, int] = {}
    for r in results:
        counts.add(r.cases)
        costs.add(r.costs)
        traits |= {t: n + traits.get(t, 0) for t, n in r.traits.items()}
    excused: dict[str, list[Excused]] = {side: [e for r in results for e in getattr(r, side)] for side in ("known", "limits")}
    return msgspec.structs.replace(
        worst,
        name=", ".join(r.name for r in results),
        contract=", ".join(dict.fromkeys(r.contract for r in results)),
        reason="; ".join(f"{r.name}: {r.reason}" for r in results),
        cases=counts,
        costs=costs,
        traits=traits,
        pairs=Pairs(max(r.pairs.judged for r in results), worst.pairs.possible),
        faults=[f for r in results for f in r.faults],
        known=excused["known"],
        limits=excused["limits"],
        volatile={**worst.volatile, "seconds": sum(r.volatile["seconds"] for r in results)},
    )


def _checked(kind: Kind, call: Any, contract: str, settings: Settings | None, name: str) -> CheckResult:
    passes = call if kind == "split-backward" else (call,)
    target = PAIR.join(map(named, passes)) if all(map(callable, passes)) else ""
    target = target if importable(target) else ""
    made = subject(kind, call, contract=contract, name=name, target=target)
    return _run(Search(kind=kind, settings=settings or Settings(), contract=contract, target=made.target), made)


def _run(search: Search, made: Subject) -> CheckResult:
    return _finished(search, Campaign(search, LocalRunner(search, made)))


def _finished(search: Search, campaign: Campaign) -> CheckResult:
    result = campaign.run()
    if OPTIONS.get("out"):
        save(result, search.kind, search.target, Path(OPTIONS["out"]))
    if campaign.interrupted:  # it was meant for the whole process
        raise KeyboardInterrupt
    return result


# inside a user's own Hypothesis test ------------------------------------------------------------------------------------

#: By case, subject, contract, device and whether known faults are excused; each with the subject, so that its id stays its own.
_verdicts: OrderedDict[tuple[str, int, str, str, bool], tuple[Verdict, Subject]] = OrderedDict()


def assert_same_gradients(
    case: Case, subject: Subject, *, contract: str = "", device: str = "", known: bool | None = None
) -> None:
    """Assert that a subject leaves behind what plain autograd leaves behind, in one case.

    For a user's own ``@given`` test over `gradcheck_plus.strategies.cases`: settings and database are the test's. The same case
    gets the same verdict in one process, so that Hypothesis never calls a subject flaky that does not repeat itself.

    Args:
        case: the case, drawn for the subject's kind.
        subject: as `gradcheck_plus.subjects.checkpoint` and `gradcheck_plus.subjects.stage_backward` return it.
        contract: what it is held to; by default the subject's own.
        device: where tensors live; by default the CPU, or what pytest's options say.
        known: excuse what is known of torch itself; by default true, or what pytest's options say.

    Raises:
        GradientMismatch: something differs that nothing excuses; the message says what, and prints the program.
        InvalidArgument: the case cannot be run under this subject.

    Example:
        >>> import gradcheck_plus as gp
        >>> from hypothesis import find, settings
        >>> case = find(gp.strategies.cases(), lambda case: True, settings=settings(database=None))
        >>> gp.assert_same_gradients(case, gp.subjects.checkpoint(lambda f, *args, **kwargs: f(*args, **kwargs)))
    """
    __tracebackhide__ = True
    device = device or OPTIONS.get("device", "cpu")
    known = OPTIONS.get("known", True) if known is None else known
    verdict = _verdict(case, subject, contract or subject.contract, device, known=known)
    if hypothesis.currently_in_test_context():
        for trait in sorted(verdict.traits):
            hypothesis.event(trait)
    if verdict.name == "invalid":
        raise InvalidArgument(
            f"`case`={case!r}: plain autograd itself raises: {verdict.reason}. Draw it with `strategies.cases`."
        )
    if verdict.faults:
        again = f"  the case, to run it again: gp.Case.from_json({case.to_json()!r})"
        raise GradientMismatch(f"{mismatch_text(subject.name, subject.kind, case, verdict.faults, verdict.rule)}\n\n{again}")


def assert_right_function(case: Case, op: Any) -> None:
    """Assert that a function is right in one case, drawn by `gradcheck_plus.strategies.calls` or written by `check_function`.

    Args:
        case: the case; it names the sample call and the reference.
        op: the function.

    Raises:
        GradientMismatch: it is wrong; the message says what.
        InvalidArgument: the case is none of a function, or the function refuses the sample call.

    Example:
        >>> import torch, gradcheck_plus as gp
        >>> from gradcheck_plus.case import Call, Program
        >>> gp.assert_right_function(gp.Case(Program(()), (), (), call=Call("values")), lambda x: torch.sin(x))
    """
    __tracebackhide__ = True
    if case.call is None:
        raise InvalidArgument("`case` is none of a function. Draw it with `strategies.calls`.")
    reference, inputs = (load(target) if target else None for target in (case.call.reference, case.call.inputs))
    inputs = decode(case.call.sample) if case.call.sample else inputs
    found = Tested(op, reference, inputs).judge(case.call)
    if found.mismatches:
        raise GradientMismatch("\n".join(m.message for m in found.mismatches))


def _verdict(case: Case, subject: Subject, contract: str, device: str, *, known: bool) -> Verdict:
    key = (case.to_json(), id(subject.call), contract, device, known)
    if key not in _verdicts:
        check_device(device)
        names = (subject.name, subject.builds_on)
        held = contract_of(contract).for_subject(*names, torch=str(torch.__version__), known=known)
        _verdicts[key] = decide(case, subject, held, device=device), subject
        if len(_verdicts) > _REMEMBERED:
            _verdicts.popitem(last=False)
    return _verdicts[key][0]
