"""The detector works: every planted fault is found, for its own reason, shrunk and proved."""

import re
import statistics
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gradcheck_plus.campaign.judging import Verdict, decide
from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.campaign.runner import LocalRunner
from gradcheck_plus.case import Case
from gradcheck_plus.execute.world import undisturbed
from gradcheck_plus.results import CheckResult, Fault
from gradcheck_plus.settings import Settings
from gradcheck_plus.zoo import ZOO, Planted

#: Faults of functions have tests of their own.
NAMES = [name for name, entry in ZOO.items() if entry.kind != "function"]

#: A repro is run as a program of its own for these, one of each make; a process costs seconds.
IN_A_PROCESS = ("rng-not-restored", "returned-and-zeroed")


@dataclass
class Found:
    """A planted fault, and how it was found."""

    entry: Planted
    fault: Fault

    @property
    def case(self) -> Case:
        return Case.from_json(self.fault.case)


@pytest.fixture(scope="module", params=NAMES)
def found(request: pytest.FixtureRequest, hunt: Callable[[str], CheckResult]) -> Found:
    return Found(ZOO[request.param], first_fault(request.param, hunt))


def first_fault(name: str, hunt: Callable[[str], CheckResult]) -> Fault:
    """Return the fault that shows a planted one."""
    return own_fault(name, hunt(name))


def own_fault(name: str, result: CheckResult) -> Fault:
    assert result.verdict == "fault", f"{name} was not found in {result.cases.run} cases"
    return result.faults[0]


def test_a_planted_fault_is_found_with_what_triggers_it(found: Found) -> None:
    trigger = set(found.fault.trigger or ())

    assert any(trigger >= alternative for alternative in found.entry.triggers), f"{found.fault.message}: {trigger}"


def test_its_twin_passes_the_case_that_shows_it(found: Found) -> None:
    assert verdict_on(found.entry, found.entry.target, found.case).name == "fault"
    assert verdict_on(found.entry, found.entry.twin_target, found.case).name in ("match", "refused")


def test_it_is_shrunk_to_at_most_four_statements(found: Found) -> None:
    assert found.entry.statements <= found.fault.statements <= 4


def test_its_repro_fails_with_it_and_passes_with_plain_autograd(found: Found) -> None:
    program, faulty = found.fault.program, found.entry.faulty

    assert raised_by_repro(program, lambda _: faulty) is not None
    assert raised_by_repro(program, plain_autograd) is None


@pytest.mark.parametrize("name", IN_A_PROCESS)
def test_its_repro_fails_as_a_program_of_its_own(name: str, hunt: Callable[[str], CheckResult], tmp_path: Path) -> None:
    file = tmp_path / "repro.py"
    file.write_text(first_fault(name, hunt).program, encoding="utf-8")

    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "AssertionError" in done.stderr


def test_half_of_the_zoo_is_shrunk_to_two_statements_or_fewer(every_hunt: Callable[[], list[CheckResult]]) -> None:
    found = [own_fault(name, result) for name, result in zip(NAMES, every_hunt(), strict=True)]
    assert statistics.median(fault.statements for fault in found) <= 2


def verdict_on(entry: Planted, target: str, case: Case) -> Verdict:
    """Judge a case under an implementation, by the contract of an entry."""
    runner = LocalRunner(Search(kind=entry.kind, settings=Settings(), contract=entry.contract, target=target))
    return decide(case, runner.subject, runner.contract)


def plain_autograd(space: dict[str, Any]) -> Any:
    """Return what a repro compares with."""
    plain = tuple(value for name, value in space.items() if name.startswith("plain_"))
    return plain if len(plain) == 2 else plain[0]


def raised_by_repro(program: str, subject: Callable[[dict[str, Any]], Any]) -> Exception | None:
    """Run a repro here, with another implementation in the place of the one that it imports; return what it raises."""
    program, replaced = re.subn(r"(?m)^(from .+ import .+ as subject|subject = .+)$", "", program)
    assert replaced == 1
    space: dict[str, Any] = {"__name__": "repro"}

    class Implementation:
        """Looked up when it is used: what the program defines is there by then. A backward in two passes is a pair."""

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return subject(space)(*args, **kwargs)

        def __iter__(self) -> Any:
            return iter(subject(space))

    space["subject"] = Implementation()
    with undisturbed("cpu", poison=False), warnings.catch_warnings(action="ignore"):
        try:
            exec(compile(program, "<repro>", "exec"), space)
        except Exception as error:
            return error
    return None
