"""Every command in docs/trace.md prints what the page shows, for the file that it shows."""

import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path

import pytest

from gradcheck_plus.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "trace.md").read_text(encoding="utf-8")
MODULE = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^```console\n\$ gradcheck-plus (.*?)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands() -> list[tuple[str, str]]:
    """Return the arguments of every command, and what it prints."""
    return COMMAND.findall(PAGE)


def test_every_command_of_the_page_is_run() -> None:
    assert len(commands()) == PAGE.count("```console") > 0


@pytest.mark.parametrize(("arguments", "shown"), [pytest.param(*command, id=command[0]) for command in commands()])
def test_it_prints_what_the_page_shows(arguments: str, shown: str, tmp_path: Path) -> None:
    (module,) = MODULE.findall(PAGE)
    (tmp_path / "block.py").write_text(module, encoding="utf-8")
    out = io.StringIO()
    with contextlib.chdir(tmp_path), contextlib.redirect_stdout(out):
        code = main(shlex.split(arguments))
    said = "".join(f"{line.rstrip()}\n" for line in out.getvalue().splitlines())

    assert code == (1 if " part\n" in shown else 0)
    assert doctest.OutputChecker().check_output(shown, said, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE), said
