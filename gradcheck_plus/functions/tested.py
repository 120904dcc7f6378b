"""The function under test: how it is called, what its arguments are called, and its sample call."""

import ast
import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from gradcheck_plus.errors import InvalidArgument, first_line
from gradcheck_plus.support import sample_call

_INPUTS = "Write what makes a sample call: a list or tuple of arguments, or the pair of arguments and keyword arguments."


@dataclass
class Argument:
    """A tensor among the arguments of the sample call.

    Attributes:
        name: how reports name it, as code.
        variable: how programs name it.
        value: what it is in the sample call.
        grad: it required grad there.
        parameter: it is a parameter of the module under test, of this name.
    """

    name: str
    variable: str
    value: torch.Tensor
    grad: bool
    parameter: str = ""


@dataclass
class Sample:
    """A sample call, taken apart: `text` calls it, with a variable for every tensor and for every object without a literal."""

    arguments: list[Argument] = field(default_factory=list)
    others: dict[str, Any] = field(default_factory=dict)
    text: str = ""


def callable_of(op: Any, what: str = "op") -> Callable[..., Any]:
    """Return what calls a function, given as a Function, its ``apply``, a module or any callable.

    Raises:
        InvalidArgument: it cannot be called.
    """
    if isinstance(op, type) and issubclass(op, torch.autograd.Function):
        made: Callable[..., Any] = op.apply
        return made
    if not callable(op) or isinstance(op, type):
        raise InvalidArgument(
            f"`{what}`={op!r} is {'a class' if isinstance(op, type) else f'of type {type(op).__name__}'}, not a function. "
            f"Write a torch.autograd.Function, its `apply`, or a callable."
        )
    call: Callable[..., Any] = op
    return call


def function_class(op: Any) -> type[torch.autograd.Function] | None:
    """Return the Function behind an op, if it is one or its ``apply``."""
    owner = op if isinstance(op, type) else getattr(op, "__self__", None)
    return owner if isinstance(owner, type) and issubclass(owner, torch.autograd.Function) else None


def name_of(op: Any) -> str:
    """Return how reports name a function."""
    found = function_class(op)
    name = found.__name__ if found else getattr(op, "__name__", None) or type(op).__name__
    return str(name)


def parameter_names(op: Any) -> list[str]:
    """Return the names of the positional arguments of a function, as far as it tells."""
    owner = function_class(op)
    try:
        call = owner.forward if owner else op.forward if isinstance(op, nn.Module) else op
        found = list(inspect.signature(call).parameters.values())
    except (TypeError, ValueError):  # what is built in does not say
        return []
    if owner and owner.setup_context is torch.autograd.Function.setup_context:
        found = found[1:]  # ctx
    return [p.name for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def required(op: Any) -> int:
    """Return how many positional arguments a function needs, as far as it tells."""
    owner = function_class(op)
    try:
        found = list(inspect.signature(owner.forward if owner else op).parameters.values())
    except (TypeError, ValueError):
        return 0
    needs = [p for p in found if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return len(needs) - bool(owner and owner.setup_context is torch.autograd.Function.setup_context)


def sample_of(op: Any, inputs: Any, seed: int = 0) -> Sample:
    """Take the sample call of a function apart.

    Args:
        op: the function, for the names of its arguments.
        inputs: the sample call, or what makes one; None for one that the signature suggests.
        seed: the random numbers that it is made with.

    Raises:
        InvalidArgument: there is no sample call, or it has no tensor that could require grad.
    """
    if inputs is None:
        inputs = _suggested(op)
    try:
        args, kwargs = _made(inputs, seed)
    except InvalidArgument:
        raise
    except Exception as error:
        raise InvalidArgument(f"`inputs`={inputs!r} raises {type(error).__name__}: {first_line(error)}. {_INPUTS}") from error
    sample = Sample()
    names = parameter_names(op)
    parts = [_spelled(value, names[i] if i < len(names) else f"x{i}", sample) for i, value in enumerate(args)]
    parts += [f"{key}={_spelled(value, key, sample)}" for key, value in kwargs.items()]
    sample.text = f"op({', '.join(parts)})"
    if isinstance(op, nn.Module):
        _add_parameters(op, parts, len(args), sample)
    if not any(a.value.is_floating_point() or a.value.is_complex() for a in sample.arguments):
        raise InvalidArgument(f"`inputs`={inputs!r} has no floating tensor, so there is nothing to differentiate. {_INPUTS}")
    return sample


def _made(inputs: Any, seed: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if callable(inputs):
        # `sample_call` draws with seed 0; another seed makes another sample.
        state = torch.get_rng_state()
        torch.manual_seed(seed)
        try:
            inputs = inputs()
        finally:
            torch.set_rng_state(state)
    if not isinstance(inputs, tuple | list | dict | torch.Tensor):
        raise InvalidArgument(f"`inputs` gives a value of type {type(inputs).__name__}. {_INPUTS}")
    args, kwargs = sample_call(lambda: inputs)
    return tuple(args), dict(kwargs)


def _suggested(op: Any) -> Any:
    count = required(op)
    if not count:
        raise InvalidArgument(f"`inputs`=None: the signature of {name_of(op)} does not say what to call it with. {_INPUTS}")
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(3, 3, generator=generator).requires_grad_() for _ in range(count)]


def _spelled(value: Any, path: str, sample: Sample) -> str:
    """Return the code of a value, and note its tensors."""
    if isinstance(value, torch.Tensor):
        taken = {a.variable for a in sample.arguments}
        variable = (
            path if path.isidentifier() and path not in taken | {"op", "y", "z", "torch"} else f"t{len(sample.arguments)}"
        )
        sample.arguments.append(Argument(path, variable, value.detach(), value.requires_grad))
        return variable
    if type(value) in (tuple, list):
        inner = [_spelled(v, f"{path}[{i}]", sample) for i, v in enumerate(value)]
        ends = "[]" if type(value) is list else "()"
        return f"{ends[0]}{', '.join(inner)}{',' if ends == '()' and len(inner) == 1 else ''}{ends[1]}"
    if type(value) is dict:
        return "{" + ", ".join(f"{k!r}: {_spelled(v, f'{path}[{k!r}]', sample)}" for k, v in value.items()) + "}"
    if isinstance(value, torch.dtype) or _literal(value):
        return repr(value)
    name = f"other{len(sample.others)}"
    sample.others[name] = value
    return name


def _literal(value: Any) -> bool:
    try:
        return bool(ast.literal_eval(repr(value)) == value)
    except (ValueError, SyntaxError, TypeError, RecursionError):
        return False


def _add_parameters(module: nn.Module, parts: list[str], positional: int, sample: Sample) -> None:
    """Make the parameters of a module arguments like others."""
    entries = []
    for number, (name, p) in enumerate(module.named_parameters()):
        sample.arguments.append(Argument(f"params[{name!r}]", f"p{number}", p.detach(), p.requires_grad, name))
        entries.append(f"{name!r}: p{number}")
    inside = ", ".join(parts[:positional]) + ("," if positional == 1 else "")
    keywords = ", ".join(f"{k!r}: {v}" for k, _, v in (part.partition("=") for part in parts[positional:]))
    sample.text = f"torch.func.functional_call(op, {{{', '.join(entries)}}}, ({inside}), {{{keywords}}})"
