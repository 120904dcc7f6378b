"""What errors say: the rule with ``name=value``, what was given, what to write instead."""

import inspect

import pytest

from gradcheck_plus import errors
from gradcheck_plus.errors import GradcheckPlusError, GradientMismatch, Inconclusive, InvalidArgument, unknown


def test_one_except_clause_catches_everything_that_is_raised_on_purpose() -> None:
    classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if c.__module__ == errors.__name__]

    assert {InvalidArgument, GradientMismatch, Inconclusive} <= set(classes)
    assert all(issubclass(c, GradcheckPlusError) for c in classes)


def test_a_wrong_call_is_a_value_error() -> None:
    """Callers who know nothing of this package still catch it."""
    assert issubclass(InvalidArgument, ValueError)


@pytest.mark.parametrize("verdict", [GradientMismatch, Inconclusive])
def test_a_verdict_is_a_failed_assertion(verdict: type[Exception]) -> None:
    """Which pytest shows as a failure, and not as an error."""
    assert issubclass(verdict, AssertionError)


def test_an_unknown_name_is_quoted_with_its_nearest_neighbours() -> None:
    """And with the command that shows all."""
    said = str(unknown("trait", "droput", ["dropout", "view", "draw-after"]))

    assert "`trait`='droput'" in said
    assert "Did you mean 'dropout'?" in said
    assert "`gradcheck-plus list traits` shows all 3." in said


def test_several_neighbours_are_all_named() -> None:
    assert "'autocast-float16' or 'autocast-bfloat16'" in str(
        unknown("trait", "autocast-float61", ["autocast-bfloat16", "autocast-float16", "eval"])
    )


def test_without_a_near_name_nothing_is_guessed() -> None:
    said = str(unknown("operation", "zzz", ["sin", "cos"]))

    assert "Did you mean" not in said
    assert "`gradcheck-plus list operations` shows all 2." in said


@pytest.mark.parametrize("name", [None, 3, ("a", "b")])
def test_a_name_of_another_type_is_quoted_as_it_is(name: object) -> None:
    assert f"`trait`={name!r} is not known." in str(unknown("trait", name, ["dropout"]))
