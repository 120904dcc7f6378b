"""What a user writes in tests: the one-call checks, and the primitive in a `@given` test."""

import re
from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import given, settings
from torch import nn

import gradcheck_plus as gp
from gradcheck_plus import strategies as gst

Run = Callable[..., pytest.RunResult]

CODE = """
    import torch
    from hypothesis import given, settings
    from torch.utils._pytree import tree_map

    import gradcheck_plus as gp
    from gradcheck_plus import strategies as gst


    def plain(function, *args, **kwargs):
        return function(*args, **kwargs)


    def scales(function, *args, **kwargs):
        return tree_map(lambda v: v * 1.5 if torch.is_floating_point(v) else v, function(*args, **kwargs))


    few = settings(max_examples=10, deadline=None, database=None, derandomize=True)
"""
GIVEN = """
    @few
    @given(case=gst.cases(max_statements=2))
    def test_{name}(case):
        gp.assert_same_gradients(case, gp.subjects.checkpoint({name}))
"""
AGAIN = """
    def test_again_{name}():
        gp.assert_same_gradients({case}, gp.subjects.checkpoint({name}))
"""
CHECK = """
    def test_check_{name}():
        gp.check_checkpoint({name}).raise_if_faulty()
"""


def test_right_subjects_pass_and_wrong_ones_fail_in_any_number_of_processes(run: Run) -> None:
    """The options reach the processes of pytest-xdist, too."""
    pytest.importorskip("xdist")
    tests = "".join(form.format(name=name) for form in (GIVEN, CHECK) for name in ("plain", "scales"))
    options = "\n    def test_options():\n        assert gp.Settings().max_examples == 12\n"

    done = run(CODE + tests + options, "-n2", "--gradcheck-max-examples=12")

    done.assert_outcomes(passed=3, failed=2)
    done.stdout.fnmatch_lines_random(["FAILED *::test_scales*", "FAILED *::test_check_scales*"])


def test_a_mismatch_is_shown_with_the_shrunk_program_and_the_case_to_run_again(run: Run, pytester: pytest.Pytester) -> None:
    """And nothing of how it was found: the traceback ends in the user's own line."""
    done = run(CODE + GIVEN.format(name="scales"))

    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "> * gp.assert_same_gradients(case, gp.subjects.checkpoint(scales))",
            "E * gradcheck_plus.errors.GradientMismatch: scales disagrees with plain autograd on * (rule: bitwise)",
            "E *  value * outputs: expected tensor(*), got tensor(*",
            "E *  | class Segment0(nn.Module):",
            "E *  | x0 = values(*",
            "E *  the case, to run it again: gp.Case.from_json('*')",
        ]
    )
    assert "in assert_same_gradients" not in done.stdout.str()
    (line,) = {line.partition("again: ")[2] for line in done.stdout.lines if "to run it again: " in line}

    again = "".join(AGAIN.format(name=name, case=line) for name in ("plain", "scales"))
    run(CODE + again).assert_outcomes(passed=1, failed=1)


SEEDED = """
    def test_seeded():
        result = gp.check_checkpoint(plain, settings=gp.Settings(max_examples=3))
        assert (result.seed, result.cases.run) == (11, 3)
"""


def test_an_option_holds_for_a_check_that_has_settings_of_its_own(run: Run) -> None:
    """In all that they do not say."""
    run(CODE + SEEDED, "--gradcheck-seed=11", "--gradcheck-max-examples=12").assert_outcomes(passed=1)


SCARCE = """
    def test_few():
        few = gp.Settings(max_examples=1, traits=("kwarg-tensor",))
        gp.check_checkpoint(plain, settings=few).raise_if_faulty()
"""


def test_a_failed_check_is_a_report_with_its_files_where_they_are_wanted(run: Run, pytester: pytest.Pytester) -> None:
    """One that judged nothing does not pass, either."""
    done = run(CODE + CHECK.format(name="scales") + SCARCE, "--gradcheck-max-examples=10", "--gradcheck-out=found")

    done.assert_outcomes(failed=2)
    done.stdout.fnmatch_lines(
        [
            "E *gradcheck_plus.errors.GradientMismatch: FAULT: checkpoint scales (*:scales), contract checkpoint: 1 distinct *",
            "E * fault 1 [[]*]: value of *, after * case*",
            "E * repro: python found/repro_*.py    replay: gradcheck-plus replay found/case_*.json",
            "E *gradcheck_plus.errors.Inconclusive: INCONCLUSIVE: * no judged case has kwarg-tensor",
        ]
    )
    assert sorted(file.suffix for file in (pytester.path / "found").iterdir()) == [".json", ".py"]
    assert not (pytester.path / "gradcheck-plus-out").exists()


# in this process --------------------------------------------------------------------------------------------------------


def plain(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


def test_a_subject_that_does_not_repeat_itself_is_a_mismatch_and_not_flaky() -> None:
    """Hypothesis runs a failing case again, and would call the test flaky if it passed then."""
    calls = count()

    def anew(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if next(calls) % 7 == 6:
            raise RuntimeError("now and then")
        return function(*args, **kwargs)

    @settings(max_examples=20, deadline=None, database=None, derandomize=True)
    @given(case=gst.cases(max_statements=2))
    def test(case: gp.Case) -> None:
        gp.assert_same_gradients(case, gp.subjects.checkpoint(anew))

    with pytest.raises(gp.GradientMismatch, match="RuntimeError: now and then"):
        test()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda: gp.check_checkpoint(3),  # type: ignore[arg-type]
            "`call`=3 is of type int, not callable. Write a callable (function, *args, **kwargs).",
        ),
        (lambda: gp.check_checkpoint(lambda: 3), "cannot be called as (function, *args, **kwargs): "),
        (
            lambda: gp.check_checkpoint(plain, contract="reentrnat"),
            "`contract`='reentrnat' is not known. Did you mean 'reentrant'?",
        ),
        (lambda: gp.check_module(nn.Identity, inputs=(), subjects=["identty"]), "`subject`='identty' is not known."),
        (lambda: gp.check_module(nn.Identity, inputs=()), "cannot be called with `inputs`="),
        (lambda: gp.check_stage_backward(plain, settings=gp.Settings(traits=("droput",))), "`trait`='droput' is not known."),
        (lambda: gp.Settings(device="cpu:0"), "`device`='cpu:0' is not supported. Write cpu, cuda or cuda:<index>."),
    ],
)
def test_a_wrong_call_says_what_to_write_instead(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(gp.InvalidArgument, match=re.escape(said)):
        call()


def test_an_interrupt_is_not_swallowed_by_a_check() -> None:
    """It was meant for the whole test run."""

    def interrupted(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        gp.check_checkpoint(interrupted, settings=gp.Settings(max_examples=5))


@pytest.mark.parametrize(("second", "passed"), [("plain_backward_weight", 1), ("lambda weights, groups: None", 0)])
def test_a_backward_in_two_passes_is_asserted_on_like_any_other(run: Run, second: str, passed: int) -> None:
    test = f"""
    from gradcheck_plus.support import plain_backward_input, plain_backward_weight

    @few
    @given(case=gst.cases("split-backward", max_statements=2))
    def test_passes(case):
        gp.assert_same_gradients(case, gp.subjects.split_backward(plain_backward_input, {second}))
    """

    run(CODE + test).assert_outcomes(passed=passed, failed=1 - passed)
