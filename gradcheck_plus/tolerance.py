"""How far a correct gradient may be off: earned by the reference's own error, never guessed.

An error budget against a float64 truth, per tensor, after the fp64 rule of torch's compiler tests
(``torch._dynamo.utils.same``) and measured by `benchmarks/tolerance.py`::

    e_subject <= 8 * (e_reference + u * (max|g64| + 1e-3 * S))

`u` is the unit roundoff of the coarsest dtype in play, `S` the largest gradient of the case. Never relative to the tensor's own
norm: some true gradients are zero.
"""

import math

import torch
from torch import Tensor

#: Honest implementations stay under 4, planted faults start at 1e5.
FACTOR = 8.0
UNIT = {"float32": 2.0**-24, "float64": 2.0**-53, "bfloat16": 2.0**-8, "float16": 2.0**-11}


def equal(a: Tensor, b: Tensor) -> bool:
    """Are two tensors of one shape and dtype the same, NaN for NaN?"""
    if torch.equal(a, b):
        return True
    return bool(((a == b) | (a.isnan() & b.isnan())).all()) if a.is_floating_point() or a.is_complex() else False


def gap(a: Tensor, b: Tensor) -> float:
    """Return the largest difference of two elements; infinite where only one of them is finite.

    Example:
        >>> gap(torch.tensor([1.0, 2.0]), torch.tensor([1.5, 2.0]))
        0.5
    """
    if not a.numel():
        return 0.0
    x, y = a.double(), b.double()
    same = (x == y) | (x.isnan() & y.isnan())
    difference = (x - y).abs().masked_fill(same, 0.0)
    return float(difference.nan_to_num(nan=math.inf, posinf=math.inf).max())


def largest(a: Tensor) -> float:
    """Return the largest finite magnitude, 0 for an empty tensor."""
    finite = a.double()[a.isfinite()] if a.numel() else a
    return float(finite.abs().max()) if finite.numel() else 0.0


def allowed(reference_error: float, unit: float, magnitude: float, scale: float) -> float:
    """Return the largest error that a correct subject may show."""
    return FACTOR * (reference_error + unit * (magnitude + 1e-3 * scale))


def ulps(difference: float, magnitude: float, dtype: torch.dtype) -> float:
    """Return a difference in units in the last place of a magnitude.

    Example:
        >>> ulps(2.0**-23, 1.0, torch.float32)
        1.0
    """
    if not dtype.is_floating_point or not math.isfinite(difference):
        return difference
    _, exponent = math.frexp(magnitude) if magnitude else (0.0, 0)
    return difference / (torch.finfo(dtype).eps * 2.0 ** (exponent - 1))
