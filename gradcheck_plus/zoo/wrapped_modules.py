"""Wrappers of modules that lose something of what they wrap, and the correct one, which changes a module in place."""

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from typing_extensions import override

from gradcheck_plus.zoo.function_checkpoint import FunctionCheckpoint
from gradcheck_plus.zoo.planted import Make
from gradcheck_plus.zoo.trees import mapped


class ModuleWrapper:
    """Called as ``wrap(module)``: from then on the forward of the module is run by a checkpoint.

    The module stays the same object, with its parameters, its hooks and its place in the tree.
    """

    def __init__(self) -> None:
        self.checkpoint = FunctionCheckpoint()

    def __call__(self, module: nn.Module) -> nn.Module:
        """Wrap a module in place and return it."""
        inner = module.forward
        module.forward = lambda *args, **kwargs: self.run(module, inner, args, kwargs)
        return module

    def run(self, module: nn.Module, inner: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return what the forward of a wrapped module returns."""
        return self.checkpoint(inner, *args, **kwargs)


class ReentrantByDefault(ModuleWrapper):
    """torch's checkpoint is called without ``use_reentrant``, where that means the reentrant one, and takes no keywords."""

    @override
    def run(self, module: nn.Module, inner: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return checkpoint(lambda *given: inner(*given, **kwargs), *args, use_reentrant=True)


class TrainModeAfterwards(ModuleWrapper):
    """The recompute sets the module to train mode, since that is the mode that modules are checkpointed in."""

    @override
    def run(self, module: nn.Module, inner: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        calls: list[None] = []

        def counted(*given: Any, **named: Any) -> Any:
            calls.append(None)
            if len(calls) > 1:
                module.train()
            return inner(*given, **named)

        return self.checkpoint(counted, *args, **kwargs)


class ModeNotPassedOn(ModuleWrapper):
    """The wrapped module answers ``train`` and ``eval`` for itself, and tells its children nothing."""

    @override
    def __call__(self, module: nn.Module) -> nn.Module:
        def train(mode: bool = True) -> nn.Module:  # noqa: FBT001, FBT002 - the signature of `nn.Module.train`
            module.training = mode
            return module

        module.train = train  # type: ignore[method-assign]
        return super().__call__(module)


class KeysPrefixed(ModuleWrapper):
    """The module is held by another one, whose ``state_dict`` has a prefix before every key."""

    @override
    def __call__(self, module: nn.Module) -> nn.Module:
        return _Holder(super().__call__(module))


class ParametersRenewed(ModuleWrapper):
    """The parameters of a module are registered anew on the same memory, so that whoever held them holds others."""

    @override
    def __call__(self, module: nn.Module) -> nn.Module:
        for name, parameter in list(module.named_parameters(recurse=False)):
            setattr(module, name, nn.Parameter(parameter.data, requires_grad=parameter.requires_grad))
        return super().__call__(module)


class InnermostWrapOnly(ModuleWrapper):
    """Inside a recompute another wrapped module is called without grad, since its own recompute will see to it."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = 0

    @override
    def run(self, module: nn.Module, inner: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nested = self.depth > 0

        def counted(*given: Any, **named: Any) -> Any:
            self.depth += 1
            try:
                return inner(*given, **named)
            finally:
                self.depth -= 1

        output = self.checkpoint(counted, *args, **kwargs)
        return mapped(torch.Tensor.detach, output) if nested else output


class HooksOfOutermostOnly(ModuleWrapper):
    """The hooks of a module are taken for those of what wraps it, and dropped when it is wrapped."""

    @override
    def __call__(self, module: nn.Module) -> nn.Module:
        module._forward_hooks.clear()
        module._backward_hooks.clear()
        return super().__call__(module)


class _Holder(nn.Module):
    """Holds a module, and calls it."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self.module(*args, **kwargs)


#: The correct one.
twin = ModuleWrapper()
plant = Make("wrapper", twin, "function-wrapper").plant

reentrant_by_default = ReentrantByDefault()
train_mode_afterwards = TrainModeAfterwards()
mode_not_passed_on = ModeNotPassedOn()
keys_prefixed = KeysPrefixed()
parameters_renewed = ParametersRenewed()
innermost_wrap_only = InnermostWrapOnly()
hooks_of_outermost_only = HooksOfOutermostOnly()

plant(
    "reentrant-by-default",
    reentrant_by_default,
    trigger="region-without-grad-input | kwarg-tensor | nested-input | nested-output | non-grad-output",
    source="pytorch/pytorch#124725, huggingface/transformers#26221",
)
plant("train-mode-afterwards", train_mode_afterwards, trigger="eval", source="facebookresearch/fairscale#709")
plant("mode-not-passed-on", mode_not_passed_on, trigger="eval", source="torch.nn.Module.train documentation")
plant(
    "keys-prefixed",
    keys_prefixed,
    source="torch.distributed.algorithms._checkpoint.checkpoint_wrapper documentation: a hook removes the prefix",
)
plant("parameters-renewed", parameters_renewed, source="pytorch/pytorch#51931, NVIDIA/Megatron-LM#656")
plant("innermost-wrap-only", innermost_wrap_only, trigger="inner-wrap | double-wrap", source="pytorch/pytorch#124725")
plant(
    "hooks-of-outermost-only",
    hooks_of_outermost_only,
    trigger="forward-hook | backward-hook",
    source="pytorch/pytorch#117925",
)
