"""Whoever interrupts a check, or ends it as a CI job that is cancelled does, keeps what was found, and no process is left."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gradcheck_plus.results import FAULT, INCONCLUSIVE

_PATIENCE = 100


@pytest.fixture(autouse=True)
def may_be_interrupted() -> Iterator[None]:
    """What a shell starts in the background ignores interrupts, and so does all that this starts, unless it says otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def interrupted(name: str, sent: signal.Signals, project: Path, out: Path) -> tuple[subprocess.Popen[str], str, str, int]:
    """Check a checkpoint, send a signal after its tenth call; return the process, its outputs and the worker's process id."""
    progress = project / "progress"
    progress.unlink(missing_ok=True)
    call = ["check", "checkpoint", f"my_checkpoints:{name}", "--keep-going", "--out", str(out), "--json", str(out / "r.json")]
    command = [sys.executable, "-m", "gradcheck_plus", *call]
    process = subprocess.Popen(command, cwd=project, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    end = time.monotonic() + _PATIENCE
    worker, calls = 0, 0
    while calls < 10 and time.monotonic() < end:
        said = progress.read_text(encoding="utf-8").split() if progress.exists() else []
        worker, calls = (int(said[0]), int(said[1])) if len(said) == 2 else (worker, calls)
        time.sleep(0.02)
    process.send_signal(sent)
    output, errors = process.communicate(timeout=_PATIENCE)
    return process, output, errors, worker


@pytest.mark.parametrize(
    ("name", "sent", "code", "said"),
    [
        ("slow", signal.SIGINT, INCONCLUSIVE, "interrupted after "),
        ("slow_and_faulty", signal.SIGTERM, FAULT, ", interrupted after "),
    ],
)
def test_an_interrupt_keeps_what_was_found(
    name: str, sent: signal.Signals, code: int, said: str, project: Path, tmp_path: Path, ends: Callable[[int], bool]
) -> None:
    """The cases of the block that runs are counted, and its fault is reported as it was met."""
    process, output, errors, worker = interrupted(name, sent, project, tmp_path)

    assert process.returncode == code, output + errors
    assert said in output.splitlines()[0]
    assert "Traceback" not in errors
    (one,) = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["checks"]
    assert 0 < one["cases"]["run"] < one["settings"]["max_examples"]
    assert bool(one["faults"]) == (code == FAULT)
    assert len(list(tmp_path.glob("case_*.json"))) == len(one["faults"])
    assert worker
    assert ends(worker)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the worker ends with its block")
def test_a_worker_does_not_outlive_a_command_that_is_killed(project: Path, tmp_path: Path, ends: Callable[[int], bool]) -> None:
    """Though it hangs, and nobody is left to say so."""
    *_, worker = interrupted("slow_then_hangs", signal.SIGKILL, project, tmp_path)

    assert worker
    assert ends(worker)


def test_an_interrupt_before_the_first_case_is_no_traceback(project: Path) -> None:
    (project / "interrupts.py").write_text(
        "import os\nos.kill(os.getppid(), 2)\nimport time\ntime.sleep(100)", encoding="utf-8"
    )

    call = [sys.executable, "-m", "gradcheck_plus", "check", "checkpoint", "interrupts:plain"]
    done = subprocess.run(call, cwd=project, capture_output=True, text=True, check=False, timeout=_PATIENCE)

    assert done.returncode == INCONCLUSIVE
    assert (done.stdout, done.stderr) == ("", "gradcheck-plus: interrupted\n")
