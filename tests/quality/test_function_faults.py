"""Every named check finds the fault that is planted for it, and says nothing of its twin."""

import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path

import pytest

import gradcheck_plus as gp
from gradcheck_plus.execute.targets import load
from gradcheck_plus.execute.world import undisturbed
from gradcheck_plus.functions.checks import CHECKS
from gradcheck_plus.zoo import ZOO, Planted

FAULTS = {entry.check: entry for entry in ZOO.values() if entry.kind == "function"}
#: Checks that need what a machine may not have, or much time.
ELSEWHERE = ("devices", "compile")
#: These are about what only a reference can say.
REFERENCED = ("values", "nondifferentiable", "autocast")
HERE = [name for name in CHECKS if name not in ELSEWHERE]


def checked(entry: Planted, target: str) -> gp.CheckResult:
    """Return the result of the one check that is about a fault."""
    cases = 3 if entry.check == "leak" else 40  # what leaks is looked for by the garbage collector, which takes long
    chosen = gp.Settings(checks=(entry.check,), max_examples=cases, seed=3)
    reference = entry.twin if entry.check in REFERENCED else None
    return gp.check_function(load(target), inputs=entry.inputs, reference=reference, settings=chosen)


@cache
def fault_of(check: str) -> gp.Fault:
    """Return what a check finds of the fault that is planted for it."""
    result = checked(FAULTS[check], FAULTS[check].target)
    assert result.verdict == "fault", result.reason
    return result.faults[0]


def test_every_check_has_a_planted_fault() -> None:
    assert set(FAULTS) == set(CHECKS)


@pytest.mark.parametrize("check", HERE)
def test_a_check_finds_its_planted_fault(check: str) -> None:
    assert fault_of(check).check in (check, "values")


@pytest.mark.parametrize("check", HERE)
def test_a_check_is_silent_on_the_twin(check: str) -> None:
    assert checked(FAULTS[check], FAULTS[check].twin_target).verdict != "fault"


@pytest.mark.parametrize("check", HERE)
def test_the_repro_fails_with_the_fault_and_passes_with_the_twin(check: str) -> None:
    program = fault_of(check).program

    assert raised_by(program) is not None
    assert (
        raised_by(program.replace(FAULTS[check].target.partition(":")[2], FAULTS[check].twin_target.partition(":")[2])) is None
    )


def raised_by(program: str) -> Exception | None:
    """Run a repro here; return what it raises."""
    program = program.replace("subject = subject.apply", "subject = getattr(subject, 'apply', subject)")
    with undisturbed("cpu", poison=False), warnings.catch_warnings(action="ignore"):
        try:
            exec(compile(program, "<repro>", "exec"), {"__name__": "repro"})
        except Exception as error:
            return error
    return None


def test_a_repro_fails_as_a_program_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "repro.py"
    file.write_text(fault_of("linearity").program, encoding="utf-8")

    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "AssertionError: the backward is not linear" in done.stderr
    assert "gradcheck_plus" not in file.read_text(encoding="utf-8").replace("gradcheck_plus.zoo", "")
