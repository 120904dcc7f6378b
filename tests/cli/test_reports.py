"""The report: as text, and as JSON that follows the schema that ships with the package."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import jsonschema
import pytest

from gradcheck_plus.cli import progress
from gradcheck_plus.report.schema import generated, shipped
from gradcheck_plus.results import FAULT, INCONCLUSIVE, MATCH

Command = Callable[..., CompletedProcess[str]]

SEARCH = ("--max-examples", "20")


def report(text: str) -> Any:
    """Return a report that follows the schema."""
    decoded = json.loads(text)
    jsonschema.validate(decoded, shipped())
    return decoded


def steady(decoded: Any) -> Any:
    """Return a report without what may change from run to run."""
    for check in decoded["checks"]:
        del check["volatile"]
    return decoded


def test_the_schema_in_the_package_is_that_of_what_is_written() -> None:
    assert shipped() == generated()


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("checkpoint my_checkpoints:plain", MATCH),
        ("checkpoint my_checkpoints:scales", FAULT),
        ("checkpoint my_checkpoints:raises_beyond_ascii", FAULT),
        ("checkpoint my_checkpoints:plain --trait kwarg-tensor --max-examples 1", INCONCLUSIVE),
        ("stage-backward my_stages:forgets", FAULT),
        ("module my_modules:Normalised --inputs my_modules:sample", MATCH),
    ],
)
def test_a_report_follows_the_schema_and_says_the_exit_code(arguments: str, code: int, inline: Command, tmp_path: Path) -> None:
    """On standard output, where it is alone."""
    done = inline("check", *arguments.split(), *(() if "--max" in arguments else SEARCH), "--json", "-", "--out", str(tmp_path))

    assert done.returncode == code, done.stderr
    decoded = report(done.stdout)
    assert (decoded["schema"], decoded["exit_code"]) == (1, code)
    assert set(decoded["tool"]) == {"version", "torch", "hypothesis", "python", "device"}
    for check in decoded["checks"]:
        assert check["cases"]["invalid"] == 0
        assert check["pairs"]["judged"] <= check["pairs"]["possible"]


def test_the_same_seed_gives_the_same_report_in_this_process_and_in_a_worker(
    command: Command, project: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """Outside of `volatile`; and another seed gives another one."""
    call = ("check", "checkpoint", "my_checkpoints:scales", *SEARCH, "--json", "-", "--out", str(tmp_path), "--seed")
    there = command(*call, "7")
    inline = request.getfixturevalue("inline")
    here, other = inline(*call, "7"), inline(*call, "8")

    assert there.returncode == here.returncode == FAULT
    assert steady(report(there.stdout)) == steady(report(here.stdout))
    assert steady(report(other.stdout))["checks"][0]["traits"] != steady(report(here.stdout))["checks"][0]["traits"]


def test_a_noisy_subject_does_not_disturb_the_report(command: Command, capfd: pytest.CaptureFixture[str]) -> None:
    """What it prints, to whatever stream, goes nowhere."""
    done = command("check", "checkpoint", "my_checkpoints:noisy", "--max-examples", "10", "--json", "-")

    assert done.returncode == MATCH, done.stderr
    assert report(done.stdout)["checks"][0]["verdict"] == "match"
    assert capfd.readouterr() == ("", "")


def test_quiet_is_one_line_and_verbose_is_more_than_the_usual(inline: Command, tmp_path: Path) -> None:
    call = ("check", "checkpoint", "my_checkpoints:scales", *SEARCH, "--out", str(tmp_path))
    quiet, usual, verbose = (inline(*call, *option).stdout for option in (["-q"], [], ["-v"]))

    assert quiet.splitlines() == usual.splitlines()[:1] == verbose.splitlines()[:1]
    assert "class Segment0(nn.Module):" in verbose
    assert "class Segment0(nn.Module):" not in usual
    assert "judged cases with each trait:" in verbose


@pytest.mark.parametrize("option", [(), ("-q",)])
def test_progress_is_told_in_lines_where_there_is_no_terminal_unless_quiet(
    option: tuple[str, ...], inline: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no word of faults: how many there are is known at the end."""
    monkeypatch.setattr(progress, "_EVERY", -1.0)
    call = ("check", "checkpoint", "my_checkpoints:scales", *SEARCH, "--out", str(tmp_path))
    told = inline(*call, *option).stderr.splitlines()

    assert bool(told) == (not option)
    assert {line.partition(" of ")[2] for line in told} <= {"20 cases"}


def test_a_device_is_written_to_and_not_replaced(inline: Command, tmp_path: Path) -> None:
    nowhere = tmp_path / "r.json"
    nowhere.symlink_to(os.devnull)

    done = inline("check", "checkpoint", "my_checkpoints:plain", "--max-examples", "3", "--json", str(nowhere))

    assert done.returncode == MATCH, done.stderr
    assert nowhere.is_symlink()
    assert Path(os.devnull).is_char_device()


def test_a_report_is_written_into_new_folders_and_over_an_old_one(inline: Command, tmp_path: Path) -> None:
    file = tmp_path / "new" / "folder" / "r.json"
    call = ("check", "checkpoint", "my_checkpoints:plain", "--max-examples", "3", "--json", str(file))

    assert [inline(*call).returncode, inline(*call).returncode] == [MATCH, MATCH]
    assert report(file.read_text(encoding="utf-8"))["exit_code"] == MATCH
    assert [entry.name for entry in file.parent.iterdir()] == ["r.json"]
