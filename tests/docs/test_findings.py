"""Every program in docs/findings.md fails while what it shows is there."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "findings.md"
FINDING = re.compile(r"^## (.+?)\n.*?^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def findings() -> list[tuple[str, str]]:
    """Return the title and the program of every finding."""
    return FINDING.findall(PAGE.read_text(encoding="utf-8"))


def test_every_finding_has_a_program_a_report_and_versions() -> None:
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]

    assert len(sections) == len(findings()) > 0
    assert all("Seen on torch " in section for section in sections)
    assert all("reported as [" in section or "no public report was found" in section for section in sections)


@pytest.mark.parametrize(("title", "program"), [pytest.param(*finding, id=finding[0]) for finding in findings()])
def test_the_program_fails(title: str, program: str, tmp_path: Path) -> None:
    """If this fails, torch has been mended: say so on the page, and in the contract that excuses it."""
    assert program.count("\n") <= 25, title
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", program], cwd=tmp_path, capture_output=True, check=False)

    assert done.returncode != 0
    assert b"SyntaxError" not in done.stderr
