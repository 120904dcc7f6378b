"""The examples in README.md and docs/ run, as a reader would run them: a page is one module, from top to bottom."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

#: Other fences (`console`, `text`) are not run.
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)

#: A session, with what it shows.
SESSION = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def examples(page: Path, fence: re.Pattern[str] = BLOCK) -> str:
    """Return the Python of a page, each line at its number in the page, so that a traceback names the right one."""
    text = page.read_text(encoding="utf-8")
    code, end = "", 0
    for block in fence.finditer(text):
        code += "\n" * text.count("\n", end, block.start(1)) + block[1]
        end = block.end(1)
    return code


def pages() -> list[Path]:
    """Return the pages that have examples; the README always counts as one."""
    return [README, *(page for page in sorted((ROOT / "docs").rglob("*.md")) if examples(page))]


def sessions() -> list[Path]:
    """Return the pages that show sessions."""
    return [page for page in (README, *sorted((ROOT / "docs").rglob("*.md"))) if examples(page, SESSION)]


def test_readme_has_examples() -> None:
    assert examples(README)


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in pages()])
def test_examples_run_without_a_warning(page: Path, tmp_path: Path) -> None:
    """Statements run on import, and functions named ``test_*`` as tests."""
    module = tmp_path / f"{page.stem}.py"
    module.write_text(examples(page), encoding="utf-8")

    command = [sys.executable, "-m", "pytest", "-W", "error", "--import-mode=importlib", str(module)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert done.returncode in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED), done.stdout + done.stderr


@pytest.mark.parametrize("page", [pytest.param(page, id=page.relative_to(ROOT).as_posix()) for page in sessions()])
def test_sessions_show_what_they_show_on_the_page(page: Path) -> None:
    """The sessions of a page are one, from top to bottom."""
    said: list[str] = []
    session = doctest.DocTestParser().get_doctest(examples(page, SESSION), {"__name__": "docs"}, page.name, str(page), 0)
    found = doctest.DocTestRunner(verbose=False).run(session, out=said.append)

    assert found.failed == 0, "".join(said)
    assert found.attempted == len(session.examples)


def test_the_page_on_hooks_has_sessions_only() -> None:
    """So that every claim in its code is run."""
    page = ROOT / "docs" / "autograd-hooks.md"

    assert page in sessions()
    assert re.findall(r"^```(.+)$", page.read_text(encoding="utf-8"), re.MULTILINE).count("pycon") == len(
        SESSION.findall(page.read_text(encoding="utf-8"))
    )
    assert set(re.findall(r"^```(.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)) == {"pycon"}
