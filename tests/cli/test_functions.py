"""`gradcheck-plus check function`, from the call to the repro and back."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from gradcheck_plus.results import FAULT, MATCH, WRONG_CALL

Command = Callable[..., CompletedProcess[str]]

ZOO = "gradcheck_plus.zoo.function_faults"
FUNCTION = ("check", "function")


def test_a_fault_is_reported_with_its_check_and_can_be_shown_again(inline: Command, tmp_path: Path) -> None:
    options = ("--inputs", f"{ZOO}:vector", "--check", "linearity", "--max-examples", "5", "--out", str(tmp_path))
    done = inline(*FUNCTION, f"{ZOO}:SineLoss", *options, "--json", str(tmp_path / "r.json"))

    assert done.returncode == FAULT, done.stdout + done.stderr
    assert "check linearity, after 1 case" in done.stdout
    assert "the backward is not linear: for twice the cotangent" in done.stdout
    (one,) = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["checks"]
    assert (one["kind"], one["verdict"], one["faults"][0]["check"]) == ("function", "fault", "linearity")
    (case,) = tmp_path.glob("case_*.json")
    replayed = inline("replay", str(case))
    assert replayed.returncode == FAULT
    assert replayed.stdout.startswith("FAILS: ")
    mended = inline("replay", str(case), "--target", f"{ZOO}:sine_loss")
    assert mended.returncode == MATCH
    assert len(list(tmp_path.glob("repro_*.py"))) == 1


def test_a_right_function_matches_its_reference(inline: Command, tmp_path: Path) -> None:
    options = ("--inputs", f"{ZOO}:vector", "--reference", f"{ZOO}:square", "--max-examples", "20", "--out", str(tmp_path))
    done = inline(*FUNCTION, f"{ZOO}:square", *options)

    assert done.returncode == MATCH, done.stdout + done.stderr
    assert done.stdout.startswith(f"MATCH: function square ({ZOO}:square), contract function: ")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--check", "linearty"), "`check`='linearty' is not known. Did you mean 'linearity'?"),
        (("--no-check", "nothing"), "`check`='nothing' is not known."),
        (("--trait", "nested-output"), "cannot be made of the sample call"),
        (("--reference", f"{ZOO}:nothing"), "has no attribute 'nothing'"),
        (("--inputs", f"{ZOO}:rows_and_bias"), "is refused by square: TypeError"),
        ((), "`reference`"),
    ],
)
def test_a_wrong_call_says_what_to_write(options: tuple[str, ...], said: str, inline: Command) -> None:
    given = options or ("--reference", f"{ZOO}:with_bias")
    inputs = () if "--inputs" in options else ("--inputs", f"{ZOO}:vector")
    done = inline(*FUNCTION, f"{ZOO}:square", *inputs, *given)

    assert done.returncode == WRONG_CALL, done.stdout
    assert said in done.stderr


def test_checks_are_listed(inline: Command) -> None:
    done = inline("list", "checks")

    assert "double-backward\talways\t" in done.stdout
    assert "compile\tif asked for\t" in done.stdout


def test_a_call_that_kills_the_process_is_a_fault_with_a_repro_that_runs(command: Command, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import os, torch\n"
        "def dies(x):\n"
        "    if not x.numel():\n"
        "        os._exit(7)\n"
        "    return x.sin()\n"
        "def sample():\n"
        "    return [torch.ones(2)]\n"
    )
    options = ("--inputs", f"{tmp_path}/mine.py:sample", "--check", "empty-inputs", "--out", str(tmp_path))
    done = command(*FUNCTION, f"{tmp_path}/mine.py:dies", *options, "--max-examples", "3")

    assert done.returncode == FAULT, done.stdout + done.stderr
    assert "the process ended: exit code 7" in done.stdout
    (repro,) = tmp_path.glob("repro_*.py")
    assert subprocess.run([sys.executable, repro], capture_output=True, check=False).returncode == 7
