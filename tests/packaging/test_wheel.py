"""What is built for users: the wheel and the sdist."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from configparser import ConfigParser
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

#: Directories of the tree, and where their files stand in an installation.
PACKAGES = {"gradcheck_plus": "gradcheck_plus", "strategies": "gradcheck_plus/strategies"}


def files_below(directory: Path) -> set[str]:
    """The files that belong to a directory, relative to it, without what Python compiled."""
    paths = (path for path in directory.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(directory).as_posix() for path in paths}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist and the wheel that was made from it."""
    # A copy, since a build writes into its tree, and would read there what an earlier build has left.
    copy = tmp_path_factory.mktemp("source") / "tree"
    left_behind = shutil.ignore_patterns(".*", "*venv*", "__pycache__", "*.egg-info", "build", "dist", "htmlcov")
    shutil.copytree(ROOT, copy, symlinks=True, ignore=left_behind)
    out = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy)]
    done = subprocess.run(command, cwd=out, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def wheel(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked wheel. One of pure Python is installed by unpacking it."""
    site = tmp_path_factory.mktemp("site")
    (archive,) = built.glob("*.whl")
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(site)
    return site


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Path:
    """The wheel's ``dist-info`` directory."""
    (directory,) = wheel.glob("*.dist-info")
    return directory


def test_wheel_holds_exactly_the_tree(wheel: Path, metadata: Path) -> None:
    """A sub-package that pyproject.toml does not list, or a data file that it does not match, would be left out silently."""
    tree = {f"{place}/{file}" for directory, place in PACKAGES.items() for file in files_below(ROOT / directory)}
    packed = {file for file in files_below(wheel) if not file.startswith(metadata.name)}

    assert packed == tree


def test_wheel_installs_one_top_level_package(wheel: Path, metadata: Path) -> None:
    """A top-level `strategies` would meet other people's."""
    assert (metadata / "top_level.txt").read_text().split() == ["gradcheck_plus"]
    assert {path.name for path in wheel.iterdir()} == {"gradcheck_plus", metadata.name}


def test_wheel_offers_the_command_and_the_pytest_plugin(metadata: Path) -> None:
    entry_points = ConfigParser(delimiters="=")
    entry_points.read(metadata / "entry_points.txt")

    assert {section: dict(entry_points[section]) for section in entry_points.sections()} == {
        "console_scripts": {"gradcheck-plus": "gradcheck_plus.cli:main"},
        "pytest11": {"gradcheck_plus.pytest_plugin": "gradcheck_plus.pytest_plugin"},
    }


def test_wheel_carries_its_licence(metadata: Path) -> None:
    assert "License-Expression: Apache-2.0" in (metadata / "METADATA").read_text()
    assert (metadata / "licenses" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_wheel_works_outside_the_tree(wheel: Path, tmp_path: Path) -> None:
    """Both packages come from the wheel, and the command starts."""
    # Not measured: the files of this copy are not those of the tree.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    environment["PYTHONPATH"] = str(wheel)

    def python(*arguments: str) -> str:
        command = [sys.executable, "-P", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    where = python("-c", "import gradcheck_plus as g, gradcheck_plus.strategies as s; print(g.__file__, s.__file__, sep='\\n')")
    assert [Path(line).relative_to(wheel) for line in where.splitlines()] == [
        Path("gradcheck_plus/__init__.py"),
        Path("gradcheck_plus/strategies/__init__.py"),
    ]
    assert "usage" in python("-m", "gradcheck_plus", "--help").lower()


def test_sdist_carries_its_own_tests(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        packed = {name.partition("/")[2] for name in opened.getnames()}

    assert packed >= {"conftest.py", *(f"tests/{file}" for file in files_below(ROOT / "tests"))}
