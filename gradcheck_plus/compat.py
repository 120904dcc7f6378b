"""torch's private names, in one place.

`SEEN_ON` says on which torch releases each was seen to do what is said here; `tests/unit/test_compat.py` checks it on the
installed one.
"""

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any

import torch
from torch.autograd.function import _SingleLevelFunction
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map, tree_map_only

#: The torch releases on which the names below were seen to work.
SEEN_ON = ("2.11", "2.13")

__all__ = [
    "SEEN_ON",
    "TorchDispatchMode",
    "arguments",
    "backward_runs",
    "builds_on_checkpoint",
    "calls_of_functions",
    "changes_operand",
    "checkpoint_wrapper",
    "composable_checkpoint",
    "current_node",
    "expected_gradients",
    "forward_class",
    "hash_store",
    "hooks_of_leaf",
    "last_sequence_number",
    "map_tensors",
    "map_values",
    "materialising",
    "offload_wrapper",
    "operation_name",
    "returned_by",
    "run_backward_of",
    "saved_tensors",
    "sequence_number",
    "split_backward",
    "stage_backward",
    "tensors",
]


def map_tensors(change: Callable[[torch.Tensor], torch.Tensor], tree: Any) -> Any:
    """Return a tree with every tensor changed."""
    return tree_map_only(torch.Tensor, change, tree)


def map_values(change: Callable[[Any], Any], tree: Any) -> Any:
    """Return a tree with every leaf changed, tensor or not."""
    return tree_map(change, tree)


def tensors(tree: Any) -> list[torch.Tensor]:
    """Return the tensors of a tree, from left to right."""
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def operation_name(func: Any) -> str:
    """Return the name of an operation that a dispatch mode is shown, without its namespace and overload."""
    name: str = func._schema.name
    return name.removeprefix("aten::")


def changes_operand(func: Any) -> bool:
    """Does such an operation write into one of its arguments?"""
    return bool(func._schema.is_mutable)


def arguments(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call of such an operation by name, defaults included."""
    declared = func._schema.arguments
    defaults = {a.name: a.default_value for a in declared if a.has_default_value()}
    return defaults | {a.name: value for a, value in zip(declared, args, strict=False)} | dict(kwargs)


def stage_backward(stage_output: Any, output_grads: Any, input_values: Any) -> tuple[torch.Tensor | None, ...]:
    """Call torch's own stage backward, which importing costs a second."""
    from torch.distributed.pipelining._backward import stage_backward as implementation

    return tuple(implementation(stage_output, output_grads, input_values))


def split_backward() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Return torch's own stage backward in two passes."""
    from torch.distributed.pipelining._backward import stage_backward_input, stage_backward_weight

    return stage_backward_input, stage_backward_weight


def builds_on_checkpoint(call: Callable[..., Any], *args: Any) -> bool | None:
    """Run ``call(*args)`` and say which of torch's checkpoints ran in it.

    Returns:
        True for the reentrant one, False for the non-reentrant one, None for neither.
    """
    from torch.utils.checkpoint import checkpoint

    code = inspect.unwrap(checkpoint).__code__
    seen: list[bool] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is code:
            seen.append(frame.f_locals["use_reentrant"] is not False)

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        call(*args)
    finally:
        sys.setprofile(before)
    return seen[0] if seen else None


# wrappers ---------------------------------------------------------------------------------------------------------------


def checkpoint_wrapper(module: torch.nn.Module, *, reentrant: bool) -> torch.nn.Module:
    """Wrap a module in torch's `checkpoint_wrapper`, in one implementation or the other."""
    from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers

    kind = wrappers.CheckpointImpl.REENTRANT if reentrant else wrappers.CheckpointImpl.NO_REENTRANT
    wrapped: torch.nn.Module = wrappers.checkpoint_wrapper(module, checkpoint_impl=kind)
    return wrapped


def offload_wrapper(module: torch.nn.Module) -> torch.nn.Module:
    """Wrap a module in torch's `offload_wrapper`."""
    from torch.distributed.algorithms._checkpoint import checkpoint_wrapper as wrappers

    wrapped: torch.nn.Module = wrappers.offload_wrapper(module)
    return wrapped


def composable_checkpoint(module: torch.nn.Module) -> torch.nn.Module:
    """Apply torch's composable `checkpoint` to a module."""
    from torch.distributed._composable.checkpoint_activation import checkpoint

    applied: torch.nn.Module = checkpoint(module)
    return applied


def hash_store() -> Any:
    """Return a store for a process group of one process, which needs no network."""
    from torch._C._distributed_c10d import HashStore

    return HashStore()


# the nodes of an autograd graph -----------------------------------------------------------------------------------------


def current_node() -> Any:
    """Return the node whose backward runs in this thread just now, None if none does."""
    return torch._C._current_autograd_node()


@contextlib.contextmanager
def backward_runs(
    around: Callable[[Sequence[Any]], contextlib.AbstractContextManager[Callable[[tuple[torch.Tensor | None, ...]], None]]],
) -> Iterator[None]:
    """Enter ``around(roots)`` for as long as each backward runs that starts meanwhile, nested ones included.

    What it yields is called with the gradients that the engine returns, which `torch.autograd.grad` asks for.

    `torch.autograd.backward` and `torch.autograd.grad` look the call of the engine up when they run. A root is a tensor or a
    gradient edge.
    """
    engine: Any = torch.autograd
    run = engine._engine_run_backward

    def watched(roots: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
        with around(roots) as note:
            returned = run(roots, *args, **kwargs)
            note(returned)
        return returned

    engine._engine_run_backward = watched
    try:
        yield
    finally:
        engine._engine_run_backward = run


def last_sequence_number() -> int:
    """Return the sequence number of the node that this thread made last.

    In a dispatch mode, which runs below autograd, that is the node of the operation, if it has one.
    """
    number: int = torch.autograd._get_sequence_nr()  # type: ignore[attr-defined]
    return number - 1


def sequence_number(node: Any) -> int:
    """Return the place of a node among those that its thread made; one that accumulates has the largest there is."""
    return int(node._sequence_nr())


def expected_gradients(node: Any) -> list[tuple[tuple[int, ...], torch.dtype, torch.device]]:
    """Return shape, dtype and device of each gradient that a node receives."""
    return [(tuple(one.shape), one.dtype, one.device) for one in node._input_metadata]


def forward_class(node: Any) -> type[torch.autograd.Function] | None:
    """Return the `torch.autograd.Function` that a node is of, None for a node of torch's own."""
    return getattr(node, "_forward_cls", None)


def run_backward_of(node: Any, gradients: Sequence[torch.Tensor | None]) -> tuple[torch.Tensor | None, ...]:
    """Run the backward of a node of a Function, which cannot be called; one result for each argument of its forward."""
    found = node.apply(*gradients)
    return found if isinstance(found, tuple) else (found,)


def saved_tensors(node: Any, name: str) -> list[tuple[torch.Tensor | None, bool]] | None:
    """Return what a node saved under a name (``self`` for ``_saved_self``), and whether an unpack hook stands before it.

    A Function saves under ``tensors``. With a hook the tensor is what was packed, if that is a tensor at all: the hook is not
    run. None if nothing can be saved under this name, or if this torch does not let it be seen without unpacking it.

    Raises:
        RuntimeError: it was freed, and torch says so; of a single tensor it does not, but has None.
    """
    raw: Any = getattr(node, f"_raw_saved_{name}", None)
    entries = raw if isinstance(raw, tuple) else (raw,)
    if not all(hasattr(entry, "unpack_hook") for entry in entries):
        return None
    return [(entry.data if isinstance(entry.data, torch.Tensor) else None, entry.unpack_hook is not None) for entry in entries]


def hooks_of_leaf(leaf: torch.Tensor) -> list[Any]:
    """Return the hooks of a leaf, in the order in which they run: those that get its gradient, those after it is added."""
    before, after = leaf._backward_hooks, getattr(leaf, "_post_accumulate_grad_hooks", None)
    return [*(before or {}).values(), *(after or {}).values()]


@contextlib.contextmanager
def materialising(nodes: Sequence[Any]) -> Iterator[dict[Any, bool]]:
    """Watch the backwards of nodes of Functions; what is yielded says of each that ran whether it saw a gradient.

    The engine looks `apply` up on the node itself. What it hands over there has zeros in the place of None unless the Function
    said ``set_materialize_grads(False)``, which cannot be read. So: True for a node that was handed tensors only.
    """
    seen: dict[Any, bool] = {}

    def watch(node: Any) -> Callable[..., Any]:
        run = node.apply

        def apply(*gradients: Any) -> Any:
            seen[node] = all(gradient is not None for gradient in gradients)
            return run(*gradients)

        return apply

    for node in nodes:
        node.apply = watch(node)
    try:
        yield seen
    finally:
        for node in nodes:
            del node.apply


@contextlib.contextmanager
def returned_by(node: Any) -> Iterator[list[Any]]:
    """Note what the backward of a Function's node returns, before the engine gives it the shape and the dtype that it wants.

    Of a node that is not a Function's nothing is noted.
    """
    found: list[Any] = []
    if not hasattr(type(node), "_forward_cls"):
        yield found
        return
    run = node.apply

    def apply(*gradients: Any) -> Any:
        made = run(*gradients)
        found.extend(made if isinstance(made, tuple) else (made,))
        return made

    node.apply = apply
    try:
        yield found
    finally:
        del node.apply


@contextlib.contextmanager
def calls_of_functions(
    note: Callable[[Any, tuple[Any, ...], Any], None], begin: Callable[[Any], None] = lambda function: None
) -> Iterator[None]:
    """Call ``begin(function)`` before and ``note(function, arguments, outputs)`` after each forward of a Function.

    Where the forward raises, the latter is not called.

    `Function.apply` calls its parent's by name when it runs, so that one who bound ``MyFunction.apply`` long ago is seen too.
    """
    parent: Any = _SingleLevelFunction
    before = parent.__dict__.get("apply")

    def apply(cls: Any, *args: Any) -> Any:
        run = before.__get__(None, cls) if before else super(parent, cls).apply
        begin(cls)
        outputs = run(*args)
        note(cls, args, outputs)
        return outputs

    parent.apply = classmethod(apply)
    try:
        yield
    finally:
        if before:
            parent.apply = before
        else:
            del parent.apply
