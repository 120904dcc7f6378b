"""A user's own module and sample call, as a program and primals that flags and cotangents can be drawn for."""

import copy
import dataclasses
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from gradcheck_plus.case import Constant, Container, ModuleProgram, Name, Primal, Scalar, Spec, Tree, Value
from gradcheck_plus.compat import TorchDispatchMode, map_tensors, operation_name
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.execute.device import seed
from gradcheck_plus.execute.targets import load
from gradcheck_plus.record import flatten
from gradcheck_plus.source import SEED


@dataclass(frozen=True)
class Sampled:
    """A module program and the primals of its sample call."""

    program: ModuleProgram
    primals: tuple[Primal, ...]


#: The traits that torch's operations bring.
_FEATURES = {
    "rrelu_with_noise": "random-activation",
    "rrelu_with_noise_": "random-activation",
    "native_batch_norm": "batch-norm",
    "_native_batch_norm_legit": "batch-norm",
    "cudnn_batch_norm": "batch-norm",
    "native_dropout": "dropout",
    "bernoulli_": "dropout",
    "bernoulli": "random",
    "rand_like": "random",
    "randn_like": "random",
    "normal_": "random",
    "uniform_": "random",
}


class _Operations(TorchDispatchMode):
    """Notes the names of the operations that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Note an operation and run it."""
        self.names.add(operation_name(func))
        return func(*args, **(kwargs or {}))


def sample(target: str, device: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return a user's sample call on a device, always the same one: positional and keyword arguments.

    Raises:
        InvalidArgument: the target raises, or returns neither arguments nor arguments and keywords.
    """
    seed(device, 0)
    value = load(target)
    try:
        made = value() if callable(value) else copy.deepcopy(value)
    except (Exception, SystemExit) as error:
        raise InvalidArgument(f"`inputs`={target!r} raised {type(error).__name__}: {error}.") from error
    made = map_tensors(lambda t: t.to(device), made)
    match made:
        case (tuple() | list() as args, dict() as kwargs):
            return tuple(args), kwargs
        case dict():
            return (), made
        case tuple() | list():
            return tuple(made), {}
        case torch.Tensor():
            return (made,), {}
    raise InvalidArgument(
        f"`inputs`={target!r} returned {type(made).__name__}. Return a tuple of arguments, a dict of keyword arguments, or "
        f"the pair of both."
    )


def sampled(module: str, inputs: str, device: str) -> Sampled:
    """Return the program that a user's module is, seen on its sample call.

    Raises:
        InvalidArgument: the factory makes no module, the sample call does not run, or no gradient can flow through it.
    """
    args, kwargs = sample(inputs, device)
    primals: list[Primal] = []
    arguments = tuple(_tree(value, f"args[{i}]", primals) for i, value in enumerate(args))
    keywords = tuple((key, _tree(value, f"kwargs[{key!r}]", primals)) for key, value in kwargs.items())
    output, dtype, features = _called(module, inputs, args, kwargs, device)
    results: list[Value] = []
    tree = _output_tree(output, results)
    if not any(r.spec.requires_grad for r in results):
        raise InvalidArgument(
            f"`target`={module!r}: no output of the sample call requires grad, so there is no gradient to compare: "
            f"{flatten(output)[0]}. Return a tensor, or a tree of tensors, that depends on a parameter or a floating input."
        )
    program = ModuleProgram(module, inputs, arguments, keywords, tree, tuple(results), features, dtype=dtype)
    return Sampled(program, tuple(primals))


def _called(
    module: str, inputs: str, args: tuple[Any, ...], kwargs: dict[str, Any], device: str
) -> tuple[Any, str, tuple[str, ...]]:
    """Return what the sample call returns, the dtype of the module's parameters, and the traits of its operations."""
    factory = load(module)
    seed(device, SEED)
    if isinstance(factory, nn.Module) or not callable(factory):
        raise InvalidArgument(f"`target`={module!r} is {type(factory).__name__}. Write a callable that makes a new nn.Module.")
    try:
        model = factory()
    except (Exception, SystemExit) as error:
        raise InvalidArgument(f"`target`={module!r} raised {type(error).__name__}: {error}.") from error
    if not isinstance(model, nn.Module):
        raise InvalidArgument(f"`target`={module!r} made {type(model).__name__}. Write a callable that makes a new nn.Module.")
    live = map_tensors(lambda t: t.detach().requires_grad_(t.is_floating_point()), (args, kwargs))
    seen = _Operations()
    try:
        with seen:
            output = model.to(device)(*live[0], **live[1])
    except (Exception, SystemExit) as error:
        raise InvalidArgument(
            f"`target`={module!r} cannot be called with `inputs`={inputs!r}: {type(error).__name__}: {error}."
        ) from error
    floating = [p for p in model.parameters() if p.is_floating_point()]
    dtype = str(floating[0].dtype).removeprefix("torch.") if floating else "float32"
    return output, dtype, tuple(sorted({_FEATURES[name] for name in seen.names if name in _FEATURES}))


def _tree(value: Any, path: str, primals: list[Primal]) -> Tree:
    """Return an argument as a tree. What is no plain container and no tensor is passed on as it is."""
    if type(value) is dict and all(isinstance(key, str) for key in value):
        children = tuple(_tree(child, f"{path}[{key!r}]", primals) for key, child in value.items())
        return Container("dict", children, tuple(value))
    if type(value) in (list, tuple):
        children = tuple(_tree(child, f"{path}[{i}]", primals) for i, child in enumerate(value))
        return Container("list" if isinstance(value, list) else "tuple", children)
    if isinstance(value, Scalar):
        return Constant(value)
    name = f"x{len(primals)}"
    spec = _spec(value, requires_grad=value.is_floating_point()) if isinstance(value, torch.Tensor) else Spec((), "python")
    primals.append(Primal(name, spec, len(primals) + 1, sample=path))
    return Name(name)


def _spec(tensor: torch.Tensor, *, requires_grad: bool) -> Spec:
    return Spec(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."), requires_grad)


def _output_tree(value: Any, results: list[Value]) -> Tree:
    if isinstance(value, torch.Tensor):
        results.append(Value(f"y{len(results)}", _spec(value, requires_grad=value.requires_grad)))
        return Name(results[-1].name)
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str):
                raise InvalidArgument(f"`key`={key!r} of an output is {type(key).__name__}. Return a dict whose keys are str.")
        return Container("dict", tuple(_output_tree(v, results) for v in value.values()), tuple(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return Container("namedtuple", tuple(_output_tree(v, results) for v in value), value._fields)
    if isinstance(value, list | tuple):
        return Container("list" if isinstance(value, list) else "tuple", tuple(_output_tree(v, results) for v in value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value)]
        return Container("dataclass", tuple(_output_tree(getattr(value, f), results) for f in fields), tuple(fields))
    return Constant(value if isinstance(value, Scalar) else type(value).__name__)
