"""The layout of the tree, and what the parts that start often may import."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = ROOT / "gradcheck_plus" / "strategies"

in_a_checkout = pytest.mark.skipif(
    not (ROOT / ".git").exists() or shutil.which("git") is None,
    reason="an sdist has no symlink: its build goes by the mapping in pyproject.toml",
)


def run(*command: str) -> subprocess.CompletedProcess[str]:
    """Run a command at the root of the tree."""
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def imported_by(*arguments: str) -> set[str]:
    """Return the top-level packages that a run of Python imports."""
    done = run(sys.executable, "-X", "importtime", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}


@in_a_checkout
def test_the_package_shows_its_strategies_by_a_relative_symlink() -> None:
    """Type checkers and import-linter read the package as it lies; an absolute link would hold on one machine only."""
    assert LINK.is_symlink()
    assert LINK.readlink() == Path("../strategies")


@in_a_checkout
def test_the_symlink_is_committed_as_a_symlink() -> None:
    mode, *_ = run("git", "ls-files", "--stage", "gradcheck_plus/strategies").stdout.split() or ["not committed"]

    assert mode == "120000"


def test_strategies_has_one_name() -> None:
    """At the root of the tree `strategies` can be found, and would be a second module with types of its own."""
    done = run(sys.executable, "-c", "import strategies")

    assert done.returncode == 1
    message = done.stderr.splitlines()[-1]
    assert message.startswith("ImportError: ")
    assert "gradcheck_plus.strategies" in message


def test_strategies_is_flat() -> None:
    """A directory below it would need its own mapping in pyproject.toml."""
    assert [path.name for path in (ROOT / "strategies").iterdir() if path.is_dir() and path.name != "__pycache__"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(("-m", "gradcheck_plus", "--help"), id="help"),
        pytest.param(("-c", "import gradcheck_plus.pytest_plugin"), id="pytest-plugin"),
    ],
)
def test_what_starts_often_starts_without_torch(arguments: tuple[str, ...]) -> None:
    """Importing torch costs seconds, hypothesis a good part of one; every pytest run of every user loads the plugin."""
    imported = imported_by(*arguments)

    assert "gradcheck_plus" in imported
    assert imported.isdisjoint({"torch", "hypothesis"})
