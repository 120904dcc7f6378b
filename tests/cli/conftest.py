"""What the tests of the command line share: a small project of a user's, and ways to call the command in it."""

import contextlib
import functools
import io
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest
import torch

from gradcheck_plus.campaign.function_runner import FunctionRunner
from gradcheck_plus.campaign.messages import Judge, Judged
from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.campaign.runner import LocalRunner
from gradcheck_plus.campaign.worker import answer
from gradcheck_plus.case import Case
from gradcheck_plus.cli import check, main, replaying

#: Runs the command with some arguments, in the project or in another folder.
Command = Callable[..., CompletedProcess[str]]

#: Seconds that a process that was killed has to end: its memory is given back first, on a machine that has more to do.
_PATIENCE = 100


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """The tensors are small: more threads would only wait for each other."""
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``my_checkpoints.py`` and ``my_modules.py``, where the command is called."""
    folder = tmp_path_factory.mktemp("project")
    source = Path(__file__).parent / "project"
    shutil.copytree(source, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture(scope="session")
def command(project: Path) -> Command:
    """The command as it is: every check runs in a process of its own, which takes seconds."""
    return functools.partial(_called, folder=project)


@pytest.fixture
def ends() -> Callable[[int], bool]:
    """Does a process come to its end? What was killed does so in its own time, and may leave a record that nobody reads."""

    def ended(process: int) -> bool:
        try:
            return "\nState:\tZ" in Path(f"/proc/{process}/status").read_text(encoding="utf-8")
        except (FileNotFoundError, ProcessLookupError):
            return True

    def ends(process: int) -> bool:
        end = time.monotonic() + _PATIENCE
        while not ended(process) and time.monotonic() < end:
            time.sleep(0.02)
        return ended(process)

    return ends


@pytest.fixture
def inline(project: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command with its checks in this process: all but the crossing to another one, in a fraction of the time."""
    for module in (check, replaying):
        monkeypatch.setattr(module, "RemoteRunner", _Inline)
    monkeypatch.syspath_prepend(project)
    return functools.partial(_called, folder=project)


class _Judging(LocalRunner):
    """What the worker process makes of a runner."""

    def judge(self, case: Case) -> Judged | None:
        return answer(self, Judge(case)).judged


class _JudgingFunctions(FunctionRunner):
    """Likewise, of functions."""

    def judge(self, case: Case) -> Judged | None:
        return answer(self, Judge(case)).judged


class _Inline:
    """Stands in for `RemoteRunner`."""

    def __init__(self, search: Search, *_: Any) -> None:
        self.search = search

    def __enter__(self) -> LocalRunner | FunctionRunner:
        return (_JudgingFunctions if self.search.kind == "function" else _Judging)(self.search)

    def __exit__(self, *_: object) -> None: ...


def _called(*arguments: str, folder: Path) -> CompletedProcess[str]:
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(folder), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(arguments)
        except SystemExit as left:  # as argparse does
            code = left.code if isinstance(left.code, int) else 1
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
