"""A case that hangs, or takes its process along, is a fault like any other: it is named, kept and reported."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from gradcheck_plus.campaign import remote
from gradcheck_plus.results import FAULT, MATCH, WRONG_CALL

Command = Callable[..., CompletedProcess[str]]


def check(command: Command, name: str, out: Path, *options: str) -> CompletedProcess[str]:
    """Check a checkpoint of the project, with all that it leaves in one folder."""
    return command("check", "checkpoint", f"my_checkpoints:{name}", "--out", str(out), "--json", str(out / "r.json"), *options)


def fault(out: Path) -> dict[str, Any]:
    """Return the only fault of a report."""
    (one,) = json.loads((out / "r.json").read_text(encoding="utf-8"))["checks"]
    (found,) = one["faults"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("name", "kind", "got"),
    [
        ("crashes", "crash", "the process ended: signal SIGSEGV"),
        ("exits", "crash", "the process ended: exit code 3"),
        ("crashes_beside_a_child", "crash", "the process ended: signal SIGSEGV"),
    ],
)
def test_a_subject_that_does_not_come_back_is_a_fault_that_names_its_case(
    name: str, kind: str, got: str, command: Command, tmp_path: Path
) -> None:
    """The case is kept as it was met."""
    done = check(command, name, tmp_path, "--trait", "kwarg-tensor", "--max-examples", "20", "--case-timeout", "4")

    assert done.returncode == FAULT, done.stdout + done.stderr
    found = fault(tmp_path)
    assert (found["kind"], found["got"], found["trigger"]) == (kind, got, None)
    assert f"{kind} of call, after {found['cases_to_find']} case" in done.stdout
    assert "(not shrunk: " in done.stdout
    replay = tmp_path / found["replay"]
    assert "kwargs" in json.dumps(json.loads(replay.read_text(encoding="utf-8"))["case"])
    compile((tmp_path / found["repro"]).read_text(encoding="utf-8"), found["repro"], "exec")


@pytest.mark.parametrize(
    ("name", "kind", "got"),
    [("hangs", "hang", "none within 4 s"), ("is_killed", "crash", "the process ended: signal SIGKILL")],
)
def test_a_case_that_does_not_come_back_does_not_come_back_when_it_is_replayed(
    name: str, kind: str, got: str, command: Command, tmp_path: Path
) -> None:
    """And passes under an implementation that does."""
    limit = ("--case-timeout", "4")
    check(command, name, tmp_path, "--trait", "kwarg-tensor", "--max-examples", "20", *limit)
    found = fault(tmp_path)
    assert (found["kind"], found["got"], found["trigger"]) == (kind, got, None)
    replay = str(tmp_path / found["replay"])

    again = command("replay", replay, *limit)
    assert again.returncode == FAULT
    assert again.stdout.startswith(f"FAILS: {replay} [{found['fingerprint']}] my_checkpoints:{name}\n  {kind} of call: ")
    assert got in again.stdout

    other = command("replay", replay, "--target", "my_checkpoints:plain", "--case-timeout", "30")
    assert other.returncode == MATCH
    assert other.stdout == f"PASSES: {replay} [{found['fingerprint']}] my_checkpoints:plain\n"


def test_a_crash_at_some_call_names_the_case_of_that_call(command: Command, tmp_path: Path) -> None:
    """Though it is not that case's fault, and the cases before it are judged as if nothing had been."""
    done = check(command, "crashes_at_the_ninth_call", tmp_path, "--operation", "sin", "--max-examples", "20")

    assert done.returncode == FAULT, done.stdout + done.stderr
    (one,) = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["checks"]
    assert one["faults"][0]["kind"] == "crash"
    assert 1 <= one["faults"][0]["cases_to_find"] <= 9
    assert one["cases"]["run"] == one["faults"][0]["cases_to_find"]


def test_a_subject_that_never_comes_back_is_a_fault(command: Command, tmp_path: Path) -> None:
    """Though it hangs even when it is called to see what it is built on."""
    done = check(command, "hangs_always", tmp_path, "--max-examples", "20", "--case-timeout", "2")

    assert done.returncode == FAULT, done.stdout + done.stderr
    assert fault(tmp_path)["kind"] == "hang"


def test_a_subject_that_hangs_while_it_is_shrunk_is_reported_with_the_fault_as_it_was_met(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "MOST_LOST", 1)

    done = check(command, "hangs_while_shrinking", tmp_path, "--max-examples", "5", "--case-timeout", "4")

    assert done.returncode == FAULT, done.stdout + done.stderr
    found = fault(tmp_path)
    assert (found["kind"], found["trigger"]) == ("value", None)


def test_a_candidate_that_hangs_is_left_out_and_the_rest_is_shrunk(command: Command, tmp_path: Path) -> None:
    done = check(command, "hangs_at_the_second_candidate", tmp_path, "--max-examples", "5", "--case-timeout", "4")

    assert done.returncode == FAULT, done.stdout + done.stderr
    found = fault(tmp_path)
    assert (found["kind"], found["trigger"]) == ("value", [])


def test_what_a_hanging_subject_has_started_is_ended_with_it(
    command: Command, project: Path, tmp_path: Path, ends: Callable[[int], bool]
) -> None:
    check(command, "starts_children", tmp_path, "--trait", "kwarg-tensor", "--max-examples", "20", "--case-timeout", "4")

    child = int((project / "child").read_text(encoding="utf-8"))
    ended = ends(child)
    if not ended:
        os.kill(child, 9)
    assert ended


# before the first case --------------------------------------------------------------------------------------------------


def test_importing_may_take_longer_than_a_case(command: Command, project: Path) -> None:
    (project / "imports_slowly.py").write_text(
        "import time\ntime.sleep(5)\n\ndef plain(function, *args, **kwargs):\n    return function(*args, **kwargs)\n",
        encoding="utf-8",
    )

    done = command("check", "checkpoint", "imports_slowly:plain", "--case-timeout", "4", "--max-examples", "3", "-q")

    assert done.returncode == MATCH, done.stderr


@pytest.mark.parametrize("line", ["os._exit(3)", "os.kill(os.getpid(), 11)"])
def test_a_target_that_ends_the_process_when_it_is_imported_is_a_wrong_call(line: str, command: Command, project: Path) -> None:
    """And no failure of the tool."""
    name = f"ends_{line[3:7].strip('_(')}"
    (project / f"{name}.py").write_text(f"import os\n{line}\n", encoding="utf-8")

    done = command("check", "checkpoint", f"{name}:plain")

    assert done.returncode == WRONG_CALL, done.stderr
    assert f"`target`='{name}:plain': importing took its process along (" in done.stderr


def test_an_import_that_never_ends_is_a_wrong_call(command: Command, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote, "IMPORTING", 1.0)
    (project / "never_imported.py").write_text("import time\ntime.sleep(1000)\n", encoding="utf-8")

    done = command("check", "checkpoint", "never_imported:plain", "--case-timeout", "1")

    assert done.returncode == WRONG_CALL, done.stderr
    assert "`target`='never_imported:plain': importing did not end within 1 s." in done.stderr


def test_a_module_whose_sample_call_never_ends_is_a_wrong_call(command: Command) -> None:
    """Nothing that a checkpoint does can be compared with that."""
    sample = ("--inputs", "my_modules:sample", "--subject", "identity", "--case-timeout", "2")
    done = command("check", "module", "my_modules:Sleeping", *sample)

    assert done.returncode == WRONG_CALL, done.stderr
    assert "`target`='my_modules:Sleeping': calling it with `inputs`='my_modules:sample' did not end within 2 s." in done.stderr
