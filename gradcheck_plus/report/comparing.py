"""What repros compare with, where a tensor comparison is not enough. Nothing imports this file; it is read as text."""

import dataclasses

import torch


def structure(value):
    """The containers of a value, and what is not a tensor in them."""
    if torch.is_tensor(value):
        return "tensor"
    if isinstance(value, dict):
        return {key: structure(value[key]) for key in value}
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [structure(child) for child in value]
    if dataclasses.is_dataclass(value):
        return type(value).__name__, [structure(getattr(value, field.name)) for field in dataclasses.fields(value)]
    return value


def shared(tensor, inputs):
    """The name of the input whose memory a tensor shares."""
    memory = tensor.untyped_storage().data_ptr()
    return next((name for name, other in inputs.items() if other.untyped_storage().data_ptr() == memory), "nothing")


def total(parts, nothing):
    """The sum of the gradients that arrive, or what stands for none."""
    some = [part for part in parts if part is not None]
    return sum(some[1:], some[0]) if some else nothing
