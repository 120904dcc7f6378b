"""A sample call as JSON: one that was drawn from a user's strategy is part of its case."""

import ast
import base64
import json
from typing import Any

import torch

from gradcheck_plus.errors import InvalidArgument


def encode(value: Any) -> str:
    """Return a sample call as JSON.

    Raises:
        InvalidArgument: there is something in it that is no tensor, list, tuple, dict or literal.

    Example:
        >>> decode(encode(([1.5, None], {"k": (True,)})))
        ([1.5, None], {'k': (True,)})
    """
    return json.dumps(_encoded(value))


def _encoded(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        flat = value.detach().contiguous().reshape(-1)
        data = base64.b64encode(bytes(flat.view(torch.uint8).tolist())).decode() if flat.numel() else ""
        return {"tensor": [str(value.dtype).removeprefix("torch."), list(value.shape), data, value.requires_grad]}
    if type(value) is list:
        return {"list": [_encoded(v) for v in value]}
    if type(value) is tuple:
        return {"tuple": [_encoded(v) for v in value]}
    if type(value) is dict:
        return {"dict": [[_encoded(k), _encoded(v)] for k, v in value.items()]}
    try:
        if ast.literal_eval(repr(value)) == value:
            return {"literal": repr(value)}
    except (ValueError, SyntaxError):
        pass
    raise InvalidArgument(
        f"`inputs` draws a value of type {type(value).__name__}, which no file can hold. Draw tensors, lists, "
        f"tuples, dicts and literals, or write what makes one sample call."
    )


def decode(text: str) -> Any:
    """Return what `encode` was given."""
    return _decoded(json.loads(text))


def _decoded(entry: Any) -> Any:
    ((kind, value),) = entry.items()
    if kind == "tensor":
        dtype, shape, data, grad = value
        raw = torch.tensor(list(base64.b64decode(data)), dtype=torch.uint8)
        made = raw.view(getattr(torch, dtype)) if len(raw) else torch.empty(0, dtype=getattr(torch, dtype))
        return made.reshape(shape).clone().requires_grad_(grad)
    if kind == "literal":
        return ast.literal_eval(value)
    if kind == "dict":
        return {_decoded(k): _decoded(v) for k, v in value}
    return (list if kind == "list" else tuple)(_decoded(v) for v in value)
