"""What is said of one difference."""

from typing import Any

import pytest

from gradcheck_plus.mismatch import Figures, Mismatch


def mismatch(**changes: Any) -> Mismatch:
    fields: dict[str, Any] = {"kind": "value", "role": "primal", "leaf": "x0.grad", "expected": "1", "got": "2"}
    return Mismatch(**{**fields, **changes})


def test_a_search_settles_on_kind_role_and_type_of_exception() -> None:
    """Leaves and values may change while a case shrinks; a TypeError may not become a RuntimeError."""
    assert mismatch(leaf="x1.grad", got="3").key == mismatch().key
    assert mismatch(role="output").key != mismatch().key
    assert mismatch(kind="dtype").key != mismatch().key
    assert mismatch(kind="raises", error="TypeError").key != mismatch(kind="raises", error="RuntimeError").key


@pytest.mark.parametrize(
    ("worse", "better"),
    [
        ({}, {"role": "call", "kind": "raises"}),
        ({"role": "parameter", "kind": "presence", "expected": "tensor([1])", "got": "None"}, {"role": "call"}),
        ({"role": "call", "kind": "raises"}, {"kind": "presence", "expected": "None", "got": "tensor([0])"}),
        ({"role": "call", "kind": "raises"}, {"role": "output"}),
        ({"role": "output"}, {"role": "buffer"}),
        ({"role": "rng", "kind": "state"}, {"role": "hook", "kind": "firings"}),
        ({"role": "hook", "kind": "firings"}, {"role": "output", "kind": "alias"}),
        ({"role": "hook", "kind": "firings"}, {"role": "input", "kind": "version"}),
    ],
)
def test_wrong_gradients_are_the_worst_then_exceptions_then_side_effects(worse: Any, better: Any) -> None:
    """The worst is reported first."""
    assert mismatch(**worse).severity < mismatch(**better).severity


def test_the_message_names_the_leaf_and_both_sides() -> None:
    assert mismatch().message == "x0.grad: expected 1, got 2"


def test_the_message_says_by_which_rule_figures_were_judged() -> None:
    bits = mismatch(figures=Figures(0.25, 0.5, 12.0, 0.0, "bitwise")).message
    budget = mismatch(figures=Figures(0.25, 0.5, 12.0, 1e-3, "budget")).message

    assert "0.25" in bits
    assert "12 ULP" in bits
    assert "equal bits are due" in bits
    assert "0.001 allowed by the budget rule" in budget


def test_the_message_says_so_where_a_difference_is_not_finite() -> None:
    said = mismatch(figures=Figures(None, None, None, 1e-3, "budget")).message

    assert "not finite" in said
    assert "None" not in said
