"""Subjects: the implementations under test, a user's own and the built-in ones.

To add a built-in subject, add a file and import it here.
"""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.expectations import ANY, Contract, contract
from gradcheck_plus.subject import KINDS, Kind, Subject
from gradcheck_plus.subjects import (
    deepspeed,
    fairscale,
    torch_checkpoint,
    torch_nested,
    torch_pipelining,
    torch_selective,
    torch_sequential,
    torch_wrappers,
    torchgpipe,
)
from gradcheck_plus.subjects.builtin import SUBJECTS, BuiltIn

__all__ = [
    "MODULE_SUBJECTS",
    "SIGNATURES",
    "SUBJECTS",
    "BuiltIn",
    "Subject",
    "checkpoint",
    "contract_of",
    "deepspeed",
    "fairscale",
    "primary",
    "split_backward",
    "stage_backward",
    "subject",
    "torch_checkpoint",
    "torch_nested",
    "torch_pipelining",
    "torch_selective",
    "torch_sequential",
    "torch_wrappers",
    "torchgpipe",
    "wrapper",
]

#: How each kind of subject is called, the contract it has by default, and torch's own subject of that sort.
SIGNATURES: dict[Kind, str] = {
    "checkpoint": "(function, *args, **kwargs)",
    "wrapper": "(module)",
    "stage-backward": "(stage_output, output_grads, input_values)",
    "split-backward": "(stage_outputs_or_loss, output_grads, input_values, weights) and (weights, param_groups)",
}
#: The built-in checkpoints that a user's own module is tried under.
MODULE_SUBJECTS = ("torch-checkpoint", "torch-checkpoint-reentrant", "torch-save-on-cpu")
_CONTRACTS: dict[Kind, str] = {kind: kind for kind in KINDS}
_PRIMARY: dict[Kind, str] = {
    "checkpoint": "torch-checkpoint",
    "wrapper": "torch-checkpoint-wrapper",
    "stage-backward": "torch-stage-backward",
    "split-backward": "torch-split-backward",
}
#: Arguments that each callable of a kind must take: it has one, or a pair of them.
_ARGUMENTS: dict[Kind, tuple[tuple[Any, ...], ...]] = {
    "checkpoint": ((abs, 1),),
    "wrapper": ((abs,),),
    "stage-backward": (((), (), []),),
    "split-backward": (([], [], [], iter(())), (iter(()), [])),
}


def checkpoint(call: Callable[..., Any], *, contract: str = "", name: str = "") -> Subject:
    """Return the subject that an activation checkpoint is.

    Args:
        call: ``checkpoint(function, *args, **kwargs)``.
        contract: what it promises; by default what recomputing must cost, or a built-in subject's own.
        name: how reports name it; by default its own name.

    Raises:
        InvalidArgument: it cannot be called that way.

    Example:
        >>> checkpoint(lambda function, *args, **kwargs: function(*args, **kwargs), name="mine").contract
        'checkpoint'
    """
    return subject("checkpoint", call, contract=contract, name=name)


def wrapper(call: Callable[..., Any], *, contract: str = "", name: str = "") -> Subject:
    """Return the subject that a wrapper of modules is.

    Args:
        call: ``wrap(module)``, which returns the module to use in its place.
        contract: what it promises; by default ``wrapper``.
        name: how reports name it; by default its own name.

    Raises:
        InvalidArgument: it cannot be called that way.
    """
    return subject("wrapper", call, contract=contract, name=name)


def stage_backward(call: Callable[..., Any], *, contract: str = "", name: str = "") -> Subject:
    """Return the subject that a pipeline-stage backward is.

    Args:
        call: ``stage_backward(stage_output, output_grads, input_values)``, which returns the gradients of the inputs.
        contract: what it promises; by default ``stage-backward``.
        name: how reports name it; by default its own name.

    Raises:
        InvalidArgument: it cannot be called that way.
    """
    return subject("stage-backward", call, contract=contract, name=name)


def split_backward(
    backward_input: Callable[..., Any], backward_weight: Callable[..., Any], *, contract: str = "", name: str = ""
) -> Subject:
    """Return the subject that a pipeline-stage backward in two passes is.

    Args:
        backward_input: ``backward_input(stage_outputs_or_loss, output_grads, input_values, weights)``, which returns the
            gradients of the inputs and what the second pass needs.
        backward_weight: ``backward_weight(weights, param_groups)``, which adds to the `.grad` of the parameters.
        contract: what the pair promises; by default ``split-backward``.
        name: how reports name it; by default the name of the first.

    Raises:
        InvalidArgument: one of them cannot be called that way.
    """
    return subject("split-backward", (backward_input, backward_weight), contract=contract, name=name)


def subject(kind: Kind, call: Any, *, contract: str = "", name: str = "", target: str = "", probe: bool = True) -> Subject:
    """Return the subject that a callable of a kind is; a built-in one is recognised.

    With `probe` a checkpoint is called once, to see whether it calls one of torch's.

    Raises:
        InvalidArgument: it is not callable, or not with the arguments of its kind.
    """
    for builtin in SUBJECTS.values():
        if builtin.kind == kind and builtin.call is call:
            if builtin.missing:
                raise InvalidArgument(f"`subject`={builtin.name!r}: {builtin.missing}.")
            made = builtin.subject
            return replace(made, name=name or made.name, contract=contract or made.contract, target=target or made.target)
    if kind == "split-backward":
        call = _pair(call, target)
    passes = call if kind == "split-backward" else (call,)
    for one, arguments in zip(passes, _ARGUMENTS[kind], strict=True):
        _check_signature(kind, one, arguments, target)
    own = _torch_own(call) if kind == "checkpoint" else None
    if own:
        return Subject(name or own.name, kind, call, contract or own.contract, target, own.name)
    named = _innermost(passes[0])
    called = name or getattr(named, "__name__", type(named).__name__)
    return Subject(called, kind, call, contract or _CONTRACTS[kind], target, _foundation(kind, call) if probe else "")


def contract_of(name: str) -> Contract:
    """Return a contract by its name or path, whose entries are about subjects that there are.

    Raises:
        InvalidArgument: there is no such contract, or an entry is about nobody and would never excuse anything.
    """
    found = contract(name)
    for entry in found.expectations:
        if entry.subject != ANY:
            SUBJECTS[entry.subject]
    return found


def primary(kind: Kind) -> BuiltIn:
    """Return torch's own subject of a kind, to which a fault is compared."""
    return SUBJECTS[_PRIMARY[kind]]


def _innermost(call: Any) -> Any:
    while isinstance(call, functools.partial):
        call = call.func
    return call


def _pair(call: Any, target: str) -> tuple[Any, Any]:
    """Return the two passes that something is: a pair, or what can be unpacked into one."""
    try:
        backward_input, backward_weight = call
    except (TypeError, ValueError) as error:
        where = f"`target`={target!r}" if target else f"`call`={call!r}"
        raise InvalidArgument(
            f"{where} is of type {type(call).__name__}, not a pair. Write two callables {SIGNATURES['split-backward']}."
        ) from error
    return backward_input, backward_weight


def _check_signature(kind: Kind, call: Any, arguments: tuple[Any, ...], target: str) -> None:
    where = f"`target`={target!r}" if target else f"`call`={call!r}"
    if not callable(call):
        raise InvalidArgument(f"{where} is of type {type(call).__name__}, not callable. Write a callable {SIGNATURES[kind]}.")
    try:
        inspect.signature(call).bind(*arguments)
    except TypeError as error:
        raise InvalidArgument(f"{where} cannot be called as {SIGNATURES[kind]}: {error}.") from error
    except ValueError:  # a callable without a signature, such as a builtin, is tried as it is
        return


def _torch_own(call: Any) -> BuiltIn | None:
    """Return which built-in subject torch's checkpoint with some arguments bound is, if it is that."""
    from torch.utils.checkpoint import checkpoint as implementation

    if _innermost(call) is not implementation:
        return None
    bound = call.keywords if isinstance(call, functools.partial) else {}
    return SUBJECTS[_torch_name(reentrant=bound.get("use_reentrant") is not False)]


def _foundation(kind: Kind, call: Any) -> str:
    """Return the built-in subject that a subject calls, or is, whose known faults and limits it then has."""
    if kind == "stage-backward":
        return ""
    if kind == "split-backward":
        # What torch's pair does wrong is no excuse for another one: each is code of its own.
        torchs = all(getattr(one, "__module__", "") == "torch.distributed.pipelining._backward" for one in call)
        return "torch-split-backward" if torchs else ""
    import torch

    from gradcheck_plus.compat import builds_on_checkpoint
    from gradcheck_plus.execute import is_answer
    from gradcheck_plus.execute.world import undisturbed

    try:
        with undisturbed("cpu", poison=False):
            if kind == "wrapper":
                reentrant = builds_on_checkpoint(call(torch.nn.Linear(2, 2)), torch.ones(2, requires_grad=True))
            else:
                reentrant = builds_on_checkpoint(call, torch.sin, torch.ones(2, requires_grad=True))
    except BaseException as error:
        if not is_answer(error):
            raise
        return ""  # it will say so again, in a case
    return "" if reentrant is None else _torch_name(reentrant=reentrant)


def _torch_name(*, reentrant: bool) -> str:
    """Return which of torch's two checkpoints it is."""
    return "torch-checkpoint-reentrant" if reentrant else "torch-checkpoint"
