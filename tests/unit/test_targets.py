"""Targets: how code and command lines name a callable."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.execute.targets import importable, load, named

if TYPE_CHECKING:
    from collections.abc import Callable


def test_an_attribute_of_a_module_is_found() -> None:
    import math
    import os.path

    assert load("math:sqrt") is math.sqrt
    assert load("os.path:join") is os.path.join
    assert load("collections:OrderedDict.fromkeys")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(
        "from helper import other\n\nclass Box:\n    inner = 3\n\ndef call():\n    return other\n", encoding="utf-8"
    )
    (tmp_path / "helper.py").write_text("other = 7\n", encoding="utf-8")
    return path


def test_an_attribute_of_a_file_is_found(file: Path) -> None:
    """And what the file imports from beside itself."""
    call: Callable[[], int] = load(f"{file}:call")

    assert call() == 7
    assert load(f"{file}:Box.inner") == 3


def test_a_target_is_loaded_once(file: Path) -> None:
    assert load(f"{file}:call") is load(f"{file}:call")


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("math", "has no attribute. Write `package.module:attribute` or `path/to/file.py:attribute`."),
        ("math:", "has no attribute. Write"),
        (":sqrt", "has no attribute. Write"),
        ("", "has no attribute. Write"),
        ("math:squareroot", "math has no attribute 'squareroot'. It has: acos"),
        ("no_such_module:f", "importing 'no_such_module' failed: ModuleNotFoundError"),
        ("no/such/file.py:f", "there is no file 'no/such/file.py'"),
        ("live:999", "was an object of another process"),
    ],
)
def test_what_cannot_be_found_is_named(target: str, said: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        load(target)

    assert f"`target`={target!r}" in str(caught.value)
    assert said in str(caught.value)


def test_a_file_that_cannot_be_run_says_why(tmp_path: Path) -> None:
    path = tmp_path / "broken.py"
    path.write_text("1 / 0\n", encoding="utf-8")

    with pytest.raises(InvalidArgument, match="ZeroDivisionError: division by zero"):
        load(f"{path}:f")


def test_live_objects_have_names_in_this_process() -> None:
    def local() -> None: ...

    for value in (local, 3, [1, 2], load):
        assert load(named(value)) is value
    assert named(load) == "gradcheck_plus.execute.targets:load"
    assert [importable(named(value)) for value in (load, local)] == [True, False]
    assert not importable("")
