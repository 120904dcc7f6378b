"""`gradcheck-plus selftest`: what it says of the zoo, and that it would say otherwise if the detector did not work."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from gradcheck_plus.cli import selftest
from gradcheck_plus.results import FAULT, INCONCLUSIVE, MATCH, WRONG_CALL, Tool
from gradcheck_plus.results.selftest import PlantedFault, SelfTest, Twin
from gradcheck_plus.zoo import ZOO

Command = Callable[..., CompletedProcess[str]]

TOOL = Tool("1", "2", "3", "4", "cpu")
EASY = ("returned-and-zeroed", "first-output-only")


def test_found_faults_and_silent_twins_are_listed_with_their_figures(command: Command, tmp_path: Path) -> None:
    file = tmp_path / "r.json"

    done = command("selftest", *EASY, "--max-examples", "30", "--seed", "3", "--processes", "1", "--json", str(file))

    assert done.returncode == MATCH, done.stdout + done.stderr
    assert "2 of 2 planted faults found, 1 of 1 twins silent; seed 3, up to 30 cases each" in done.stdout
    report = json.loads(file.read_text(encoding="utf-8"))
    assert (report["exit_code"], report["asked"], report["seed"]) == (MATCH, 3, 3)
    assert [f["name"] for f in report["faults"]] == list(EASY)
    for found in report["faults"]:
        assert found["found"]
        assert 1 <= found["cases_to_find"] <= found["run"] <= 30
        assert found["smallest"] <= found["statements"] <= 3
        assert found["twin"] in ("match", "refused")
    (twin,) = report["twins"]
    assert (twin["target"], twin["verdict"], twin["run"]) == (ZOO[EASY[0]].twin_target, "match", 30)


def test_a_fault_that_is_not_found_fails_the_self_test(command: Command) -> None:
    done = command("selftest", "nested-saved-in-float32", "--max-examples", "1", "--processes", "1")

    assert done.returncode == FAULT
    assert "not in 1" in done.stdout
    assert "Not as it should be: nested-saved-in-float32" in done.stdout


def test_an_interrupt_keeps_what_was_found_and_says_nothing_of_the_rest(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cut(*_: Any) -> Iterator[tuple[int, Any]]:
        yield 0, (PlantedFault(name="returned-and-zeroed", kind="stage-backward", found=True, run=9, smallest=1), TOOL)
        raise KeyboardInterrupt

    monkeypatch.setattr(selftest, "Several", cut)

    done = command("selftest", "returned-and-zeroed")

    assert done.returncode == INCONCLUSIVE
    assert "Interrupted: not all was checked.\n1 of 1 planted faults found" in done.stdout


def test_a_twin_that_is_accused_fails_the_self_test() -> None:
    twin = Twin(target="t", kind="checkpoint", contract="strict", verdict="fault", run=10, judged=10, accusations=("no",))

    assert SelfTest(tool=TOOL, seed=0, max_examples=10, asked=2, twins=[twin]).judge() == FAULT
    assert SelfTest(tool=TOOL, seed=0, max_examples=10, asked=2).judge() == INCONCLUSIVE


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("rng-not-restord",), "`fault`='rng-not-restord' is not known. Did you mean 'rng-not-restored'?"),
        (("returned-and-zeroed", "--kind", "checkpoint"), "`kind`='checkpoint' leaves none of the named faults."),
        (("--max-examples", "0"), "`max_examples`=0 runs nothing. Write at least 1."),
        (("--processes", "-1"), "`processes`=-1 runs nothing. Write at least 1."),
    ],
)
def test_a_wrong_call_says_what_to_write_instead(arguments: tuple[str, ...], said: str, command: Command) -> None:
    done = command("selftest", *arguments)

    assert done.returncode == WRONG_CALL
    assert said in done.stderr
