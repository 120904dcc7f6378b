"""Every program in docs/findings.md fails while what it shows is there."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
FINDING = re.compile(r"^## (.+?)\n.*?^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
#: Runs programs, each in a copy of one process that has imported torch, and says how each ended.
RUNNER = """
import json, os, sys, warnings
import torch, torch._dynamo, torch._higher_order_ops.wrap  # which checkpoints import when they are called

warnings.simplefilter("ignore")
for program in json.load(sys.stdin):
    child = os.fork()
    if not child:
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        try:
            exec(compile(program, "<finding>", "exec"), {"__name__": "__main__"})
        except BaseException as error:
            os._exit(3 if isinstance(error, (SyntaxError, ImportError, NameError)) else 1)
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


def findings() -> list[tuple[str, str]]:
    """Return the title and the program of every finding."""
    return FINDING.findall(PAGE.read_text(encoding="utf-8"))


def missing(program: str) -> list[str]:
    """Return the packages that a program needs and that are not installed here."""
    needed = re.findall(r"^(?:from|import) (\w+)", program, re.MULTILINE)
    return [name for name in needed if importlib.util.find_spec(name) is None]


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Return how each program that can be run here ended."""
    runnable = [program for _, program in findings() if not missing(program)]
    done = subprocess.run(
        [sys.executable, "-c", RUNNER],
        input=json.dumps(runnable),
        cwd=tmp_path_factory.mktemp("findings"),
        capture_output=True,
        text=True,
        check=True,
    )
    return dict(zip(runnable, map(int, done.stdout.split()), strict=True))


def test_every_finding_has_a_program_a_report_and_versions() -> None:
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]

    assert len(sections) == len(findings()) > 0
    assert all("reported as" in section or "no report known" in section for section in sections)
    assert all("Seen on torch " in section for section in sections)


@pytest.mark.parametrize(("title", "program"), [pytest.param(*finding, id=finding[0]) for finding in findings()])
def test_the_program_fails(title: str, program: str, ended: dict[str, int]) -> None:
    """If this fails, torch has been mended: say so on the page, and in the contract that excuses it."""
    assert program.count("\n") <= 25, title
    if missing(program):
        pytest.skip(f"{', '.join(missing(program))} is not installed")

    assert ended[program] not in (0, 3)
