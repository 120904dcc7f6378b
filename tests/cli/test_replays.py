"""`gradcheck-plus replay`: cases that were found, run again."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from gradcheck_plus.results import FAULT, INCONCLUSIVE, MATCH, WRONG_CALL

Command = Callable[..., CompletedProcess[str]]


@pytest.fixture
def kept(inline: Command, tmp_path: Path) -> Path:
    """The replay of a fault of `my_checkpoints:scales`."""
    inline("check", "checkpoint", "my_checkpoints:scales", "--max-examples", "5", "--out", str(tmp_path), "-q")
    (file,) = tmp_path.glob("case_*.json")
    return file


def changed(file: Path, name: str, **fields: object) -> Path:
    """Return another replay file, some of whose fields are other ones."""
    other = file.with_name(name)
    decoded = json.loads(file.read_text(encoding="utf-8"))
    other.write_text(json.dumps({**decoded, **fields}), encoding="utf-8")
    return other


def test_a_case_that_still_fails_says_so(kept: Path, inline: Command) -> None:
    done = inline("replay", str(kept))

    assert done.returncode == FAULT
    assert done.stdout.startswith(f"FAILS: {kept} [{kept.stem.removeprefix('case_')}] my_checkpoints:scales\n  value of ")
    assert not done.stderr


def test_a_case_passes_under_an_implementation_that_is_right(kept: Path, inline: Command) -> None:
    done = inline("replay", str(kept), "--target", "my_checkpoints:plain")

    assert done.returncode == MATCH
    assert done.stdout.startswith(f"PASSES: {kept} ")


def test_a_case_that_fails_in_another_way_says_that(kept: Path, inline: Command) -> None:
    done = inline("replay", str(kept), "--target", "my_checkpoints:raises")

    assert done.returncode == FAULT
    assert done.stdout.startswith(f"FAILS DIFFERENTLY: {kept} ")
    assert "raises of call: " in done.stdout


def test_several_cases_have_the_worst_exit_code_of_them(kept: Path, inline: Command) -> None:
    passing = changed(kept, "passing.json", target="my_checkpoints:plain")

    assert inline("replay", str(passing)).returncode == MATCH
    done = inline("replay", str(kept), str(passing))
    assert done.returncode == FAULT
    assert [line.split(":")[0] for line in done.stdout.splitlines() if not line.startswith(" ")] == ["FAILS", "PASSES"]


def test_the_program_is_shown_where_one_wants_to_see_more(kept: Path, inline: Command) -> None:
    assert "  | class Segment0(nn.Module):" in inline("replay", str(kept), "-v").stdout
    assert "class Segment0" not in inline("replay", str(kept)).stdout


def test_a_case_of_an_object_without_a_name_asks_for_one(kept: Path, inline: Command) -> None:
    nameless = changed(kept, "nameless.json", target="")

    done = inline("replay", str(nameless))
    assert done.returncode == WRONG_CALL
    assert "was written for an object without an import path. Name one with --target." in done.stderr
    assert inline("replay", str(nameless), "--target", "my_checkpoints:plain").returncode == MATCH


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"schema": 2}, "`schema`=2"),
        ({"kind": "wrap"}, "Invalid enum value 'wrap'"),
        ({"contract": "reentrnat"}, "`contract`='reentrnat' is not known."),
        ({"target": "my_checkpoints:plian"}, "has no attribute 'plian'"),
        ({"device": "nonsense"}, "`device`='nonsense' is not supported."),
        ({"more": 1}, "unknown field `more`"),
        ({"case": {}}, "missing required field"),
    ],
)
def test_a_replay_that_was_tampered_with_is_refused(fields: dict[str, object], said: str, kept: Path, inline: Command) -> None:
    done = inline("replay", str(changed(kept, "changed.json", **fields)))

    assert done.returncode == WRONG_CALL, done.stdout + done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_case_on_which_plain_autograd_raises_is_inconclusive(inline: Command, tmp_path: Path) -> None:
    """It cannot say anything about a subject: here the module takes another call by now."""
    call = ("check", "module", "my_modules:Counting", "--inputs", "my_modules:sample", "--subject", "torch-checkpoint")
    inline(*call, "--max-examples", "5", "--out", str(tmp_path))
    (file,) = tmp_path.glob("case_*.json")
    assert inline("replay", str(file)).returncode == FAULT
    file.write_text(
        file.read_text(encoding="utf-8").replace("my_modules:Counting", "my_modules:KeywordsOnly"), encoding="utf-8"
    )

    done = inline("replay", str(file))

    assert done.returncode == INCONCLUSIVE
    assert done.stdout.startswith(f"INVALID: {file} ")
    assert "plain autograd itself raises: forward: TypeError: " in done.stdout
