"""Central differences: right where a function is smooth, silent where it is not."""

from collections.abc import Callable

import pytest
import torch

from gradcheck_plus.functions.numeric import compared, jacobian
from gradcheck_plus.functions.point import Point, plain_point
from gradcheck_plus.functions.support import gradients
from gradcheck_plus.functions.tested import sample_of


def at(*values: float) -> Point:
    return plain_point(sample_of(torch.sin, [torch.tensor(values, dtype=torch.float64)]), double=True)


SMOOTH = [torch.sin, torch.exp, lambda x: x**3, lambda x: x.softmax(-1), lambda x: (x * x).cumsum(0)]


@pytest.mark.parametrize("op", SMOOTH)
def test_the_gradients_of_smooth_functions_are_right_at_every_scale(op: Callable[..., torch.Tensor]) -> None:
    for point in (at(0.5, -1.0, 2.0), at(1e-6, 3.0, -2e-3), at(0.0, 0.0, 1.0)):
        wrong, kinks = compared(point, op, gradients(point.run, op, point.leaves))
        assert (wrong, kinks) == ([], 0)
        assert jacobian(point, op)[0] == []


KINKED: list[tuple[Callable[..., torch.Tensor], tuple[float, ...]]] = [
    (torch.relu, (0.0, 0.0)),
    (torch.abs, (0.0, 1.0)),
    (torch.sign, (0.0, 0.0)),
    (torch.floor, (1.0, -2.0)),
    (lambda x: x.amax(-1, keepdim=True), (2.0, 2.0)),
    (lambda x: x.median(-1).values, (2.0, 2.0, 2.0)),
    (lambda x: x.sort().values, (1.0, 1.0)),
    (torch.linalg.vector_norm, (0.0, 0.0)),
]


@pytest.mark.parametrize(("op", "values"), KINKED)
def test_nothing_is_wrong_at_a_kink_or_a_jump(op: Callable[..., torch.Tensor], values: tuple[float, ...]) -> None:
    point = at(*values)

    assert compared(point, op, gradients(point.run, op, point.leaves))[0] == []
    assert jacobian(point, op)[0] == []


def test_what_is_left_out_at_a_kink_is_counted() -> None:
    point = at(0.0, 0.0, 1.0)

    assert compared(point, torch.relu, gradients(point.run, torch.relu, point.leaves)) == ([], 2)
    assert jacobian(point, torch.relu) == ([], 2, 7)


@pytest.mark.parametrize("factor", [1.1, -1.0, 1.001, float("nan")])
def test_a_gradient_that_is_off_is_wrong_with_the_place_and_both_values(factor: float) -> None:
    point = at(0.5, -1.0, 2.0)
    got = gradients(point.run, torch.sin, point.leaves)
    got[0][1] *= factor
    wrong, _ = compared(point, torch.sin, got)

    assert [w.index for w in wrong] == [(1,)]
    assert wrong[0].expected == pytest.approx(got[0][1].item() / factor, nan_ok=True) or factor != factor


def test_one_wrong_entry_of_a_jacobian_is_found_whatever_the_others_are() -> None:
    class OneOff(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN205
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):  # type: ignore[no-untyped-def] # noqa: ANN001, ANN205
            (x,) = ctx.saved_tensors
            slope = 2 * x
            slope[7] *= 1.1
            return g * slope

    point = plain_point(sample_of(OneOff, [torch.linspace(-1, 1, 30, dtype=torch.float64)]), double=True)
    wrong, left_out, entries = jacobian(point, OneOff.apply)

    assert [(slot, index, row) for slot, index, row, *_ in wrong] == [(0, [7], 7)]
    assert (left_out, entries) == (0, 900)
