"""What the command costs before it does something, how it is called, and the commands that only show."""

import subprocess
import sys
from collections.abc import Callable
from subprocess import CompletedProcess

import pytest

from gradcheck_plus import __version__
from gradcheck_plus.cli import demo, main
from gradcheck_plus.cli.parser import parser
from gradcheck_plus.expectations import built_in
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.results import FAULT, MATCH, TOOL_FAILED
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.traits import TRAITS
from gradcheck_plus.zoo import ZOO

Command = Callable[..., CompletedProcess[str]]


@pytest.mark.parametrize(
    "arguments",
    [
        "--help",
        "--version",
        "check --help",
        "check checkpoint --help",
        "trace --help",
        "check frobnicate",
        "list traits",
        "check checkpoint x:y --dtype z",
    ],
)
def test_help_lists_and_mistakes_need_no_torch(arguments: str) -> None:
    """Nor Hypothesis: what takes seconds to import is imported by the worker only."""
    code = (
        "import sys\nfrom gradcheck_plus.cli import main\n"
        f"try:\n    main({arguments.split()})\nexcept SystemExit:\n    pass\n"
        "sys.exit(', '.join({'torch', 'hypothesis'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["check checkpoint", "check stage-backward", "check module", "replay"])
def test_help_says_what_the_exit_codes_mean(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        parser().parse_args([*command.split(), "--help"])

    assert left.value.code == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "0 nothing wrong, 1 a fault, 2 the call is wrong" in said


def test_the_module_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "gradcheck_plus", "--version"], capture_output=True, text=True, check=True)

    assert done.stdout == f"gradcheck-plus {__version__}\n"


@pytest.mark.parametrize(
    ("what", "names"),
    [
        ("operations", CATALOGUE),
        ("traits", TRAITS),
        ("subjects", SUBJECTS),
        ("contracts", built_in()),
        ("faults", ZOO),
    ],
)
def test_a_list_has_a_line_for_every_name(what: str, names: list[str], inline: Command) -> None:
    """With tabs between its columns, where it is read by a program."""
    done = inline("list", what)

    assert done.returncode == MATCH
    head, *lines = [line.split("\t") for line in done.stdout.splitlines()]
    assert head[0] == "name"
    assert sorted(line[0] for line in lines) == sorted(names)
    assert {len(line) for line in lines} == {len(head)}


def test_a_reader_that_leaves_changes_nothing() -> None:
    """As `head` does; a shell that asks for the exit code gets the one of the command."""
    call = [sys.executable, "-m", "gradcheck_plus", "list", "operations"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()

        assert process.stderr.read() == b""
        assert process.wait() == MATCH


def test_a_mistake_of_ours_is_no_fault_of_the_subject(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python ends with 1 where an exception reaches the top, and 1 would say that there is a fault."""
    monkeypatch.setattr("gradcheck_plus.cli.commands.COMMANDS", {"list": lambda _: 1 // 0})

    assert main(["list", "traits"]) == TOOL_FAILED
    assert "the tool itself failed; please report this:\nTraceback " in capsys.readouterr().err


@pytest.mark.parametrize(("rows", "code"), [(slice(3, None), MATCH), (slice(4, 5), FAULT)])
def test_the_demo_has_a_row_for_every_check_and_shows_the_planted_fault(
    rows: slice, code: int, inline: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is well if the planted fault is found and nothing else is; not if the fault is expected elsewhere."""
    chosen = demo._rows()
    wrong = [demo._Row("no fault", "checkpoint", SUBJECTS["identity"].subject.target, "strict", "fault", "")]
    monkeypatch.setattr(demo, "_rows", lambda: chosen[rows] if code == MATCH else [*chosen[3:4], *wrong])

    done = inline("demo", "--max-examples", "60")

    assert done.returncode == code, done.stdout
    assert ("All as it should be." in done.stdout) == (code == MATCH)
    if code == MATCH:
        for row in chosen[rows]:
            assert row.name in done.stdout
        assert "\nFAULT: checkpoint " in done.stdout
        assert ZOO[demo._PLANTED].target in done.stdout
