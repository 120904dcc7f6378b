"""How far a correct gradient may be off."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from gradcheck_plus.tolerance import FACTOR, UNIT, allowed, equal, gap, largest, ulps

INF, NAN = math.inf, math.nan
FLOATS = [getattr(torch, name) for name in UNIT]
numbers = st.floats(-100, 100, width=32) | st.sampled_from([INF, -INF, NAN, 0.0, -0.0])
some = settings(max_examples=200, database=None, deadline=None, derandomize=True)


def t(*values: float, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.tensor(values, dtype=dtype)


@pytest.mark.parametrize("dtype", [*FLOATS, torch.complex64])
def test_nan_equals_nan(dtype: torch.dtype) -> None:
    """A gradient that is NaN on both sides is no fault of the subject."""
    assert equal(t(NAN, 1, dtype=dtype), t(NAN, 1, dtype=dtype))
    assert not equal(t(NAN, 1, dtype=dtype), t(1, NAN, dtype=dtype))
    assert not equal(t(NAN, 1, dtype=dtype), t(NAN, 2, dtype=dtype))
    assert not equal(t(NAN, 1, dtype=dtype), t(0, 1, dtype=dtype))


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8, *FLOATS])
def test_tensors_of_every_dtype_can_be_equal_or_not(dtype: torch.dtype) -> None:
    assert equal(t(1, 0, dtype=dtype), t(1, 0, dtype=dtype))
    assert not equal(t(1, 0, dtype=dtype), t(1, 1, dtype=dtype))
    assert equal(t(dtype=dtype), t(dtype=dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_bit_is_a_difference(dtype: torch.dtype) -> None:
    one = t(1, dtype=dtype)
    next_one = torch.nextafter(one, t(INF, dtype=dtype))

    assert not equal(one, next_one)
    assert gap(one, next_one) > 0
    assert ulps(gap(one, next_one), 1.0, dtype) == 1


@some
@given(st.lists(st.tuples(numbers, numbers), max_size=5))
def test_there_is_a_gap_where_tensors_are_not_equal(pairs: list[tuple[float, float]]) -> None:
    """It is the same either way, not negative and never NaN, so that no comparison with it is silently false."""
    a, b = t(*(x for x, _ in pairs)), t(*(y for _, y in pairs))

    assert gap(a, b) == gap(b, a) >= 0
    assert (gap(a, b) == 0) == equal(a, b)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (t(1, 2), t(1.5, 2), 0.5),
        (t(1, INF), t(1, INF), 0),
        (t(1, INF), t(1, -INF), INF),
        (t(1, INF), t(1, 2), INF),
        (t(1, NAN), t(1.5, NAN), 0.5),
        (t(1, NAN), t(1, 2), INF),
        (t(NAN), t(INF), INF),
        (t(), t(), 0),
        (torch.tensor(3), torch.tensor(1), 2),
        (torch.tensor([True, False]), torch.tensor([True, True]), 1),
    ],
)
def test_the_gap_is_the_largest_difference(a: Tensor, b: Tensor, expected: float) -> None:
    """Infinite where only one of the two is finite."""
    assert gap(a, b) == expected


@pytest.mark.parametrize(
    ("a", "expected"), [(t(1, -3, 2), 3), (t(1, NAN, INF), 1), (t(NAN, -INF), 0), (t(), 0), (torch.tensor(-2), 2)]
)
def test_the_largest_magnitude_is_finite(a: Tensor, expected: float) -> None:
    assert largest(a) == expected


@pytest.mark.parametrize(
    ("difference", "magnitude", "dtype", "expected"),
    [
        (2.0**-23, 1.0, torch.float32, 1),
        (2.0**-23, 1.9, torch.float32, 1),
        (2.0**-22, 2.0, torch.float32, 1),
        (2.0**-24, 0.9, torch.float32, 1),
        (2.0**-52, 1.0, torch.float64, 1),
        (2.0**-7, 1.0, torch.bfloat16, 1),
        (2.0**-10, 1.0, torch.float16, 1),
        (3, 100, torch.int64, 3),
        (INF, 1.0, torch.float32, INF),
        (0.0, 0.0, torch.float32, 0),
    ],
)
def test_units_in_the_last_place(difference: float, magnitude: float, dtype: torch.dtype, expected: float) -> None:
    assert ulps(difference, magnitude, dtype) == expected


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_unit_of_a_dtype_is_half_its_epsilon(dtype: torch.dtype) -> None:
    """Unit roundoff, as in the error budget."""
    assert UNIT[str(dtype).removeprefix("torch.")] == torch.finfo(dtype).eps / 2


def test_the_budget_is_earned_by_the_reference() -> None:
    """8 * (e_reference + u * (max|g64| + 1e-3 * S)).

    A thousandth of the case's largest gradient counts, since some true gradients are zero.
    """
    u = UNIT["float32"]

    assert FACTOR == 8
    assert allowed(0.0, u, 0.0, 0.0) == 0
    assert allowed(0.25, 0.0, 100.0, 100.0) == 2
    assert allowed(0.0, u, 1.0, 0.0) == 8 * u
    assert allowed(0.0, u, 0.0, 1000.0) == pytest.approx(8 * u)
    assert allowed(0.25, u, 1.0, 1000.0) == pytest.approx(2 + 16 * u)


@some
@given(*[st.floats(0, 1e3)] * 4)
def test_a_larger_error_of_the_reference_never_allows_less(error: float, more: float, magnitude: float, scale: float) -> None:
    unit = UNIT["float32"]

    assert allowed(error, unit, magnitude, scale) <= allowed(error + more, unit, magnitude, scale)
    assert allowed(error, unit, magnitude, scale) <= allowed(error, UNIT["bfloat16"], magnitude, scale)
