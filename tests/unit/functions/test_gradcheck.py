"""The drop-in: torch's signature, torch's verdict where torch has one, and more."""

import inspect
from typing import Any

import pytest
import torch
from torch.autograd.gradcheck import GradcheckError
from torch.autograd.gradcheck import gradcheck as torch_gradcheck

import gradcheck_plus as gp
from gradcheck_plus.zoo import function_faults as faults
from gradcheck_plus.zoo.function_surroundings import ComplexSquare


def double(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64, requires_grad=True)


def test_it_has_torch_s_options_and_defaults() -> None:
    ours, theirs = (inspect.signature(f).parameters for f in (gp.gradcheck, torch_gradcheck))

    assert [(p.name, p.kind, p.default) for p in ours.values()] == [(p.name, p.kind, p.default) for p in theirs.values()]


@pytest.mark.parametrize("options", [{}, {"fast_mode": True}, {"check_forward_ad": True}, {"check_batched_grad": True}])
def test_what_is_right_passes_as_with_torch(options: dict[str, Any]) -> None:
    assert (
        gp.gradcheck(torch.sin, double(0.5, 2.0), **options) is torch_gradcheck(torch.sin, double(0.5, 2.0), **options) is True
    )


def test_what_is_wrong_raises_what_torch_raises_with_a_cause() -> None:
    with pytest.raises(GradcheckError, match="the backward is not linear: for twice the cotangent"):
        gp.gradcheck(faults.SineLoss.apply, double(0.5, 2.0))
    assert gp.gradcheck(faults.SineLoss.apply, double(0.5, 2.0), raise_exception=False) is False


def test_a_kink_is_no_fault_though_it_is_one_for_torch() -> None:
    assert gp.gradcheck(torch.relu, double(0.0, 1.0))
    assert not torch_gradcheck(torch.relu, double(0.0, 1.0), raise_exception=False)


def test_nested_inputs_keyword_arguments_and_module_parameters_are_checked() -> None:
    assert gp.gradcheck(lambda d: {"y": d["x"][0] * 2}, ({"x": [double(0.5, 2.0)]},))
    assert gp.gradcheck(lambda *, x: x.sin(), {"x": double(0.5, 2.0)})
    assert gp.gradcheck(torch.nn.Linear(2, 3).double(), torch.ones(1, 2, dtype=torch.float64))


def test_tolerances_are_obeyed() -> None:
    def off(x: torch.Tensor) -> torch.Tensor:
        return x.sin() + (1e-4 * (x - x.detach()))

    assert not gp.gradcheck(off, double(0.5, 2.0), raise_exception=False, rtol=1e-6)
    assert gp.gradcheck(off, double(0.5, 2.0), atol=1e-2)


def test_nothing_to_check_is_a_wrong_call_as_with_torch() -> None:
    for check in (gp.gradcheck, torch_gradcheck):
        with pytest.raises(ValueError, match=r"require"):
            check(torch.sin, torch.ones(2, dtype=torch.float64))


@pytest.mark.parametrize("faulty", [faults.Doubled, faults.HalfSquare, faults.Reversal, ComplexSquare])
def test_what_it_fails_on_is_what_is_wrong_at_these_inputs(faulty: Any) -> None:
    given = torch.tensor([0.5, 1.0, 2.0], dtype=torch.complex128 if faulty is ComplexSquare else torch.float64)
    given = given * (1 + 0.5j) if given.is_complex() else given

    assert not gp.gradcheck(faulty.apply, given.requires_grad_(), raise_exception=False)
