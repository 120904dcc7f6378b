"""`trace` shows every node of a backward, and where two runs part first."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from xml.etree import ElementTree

import msgspec
import pytest

from gradcheck_plus.graph.folding import MOST
from gradcheck_plus.report.trace import Trace
from gradcheck_plus.results import FAULT, INCONCLUSIVE, MATCH, WRONG_CALL

Command = Callable[..., CompletedProcess[str]]

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def trace(inline: Command) -> Command:
    """Call the command on a target of the project."""
    return lambda target, *rest: inline("trace", f"my_traces:{target}", *rest)


def read(done: CompletedProcess[str]) -> Trace:
    return msgspec.json.decode(done.stdout, type=Trace)


# one run ------------------------------------------------------------------------------------------------------------------


def test_a_table_says_of_each_node_what_passed_and_where_it_comes_from(trace: Command) -> None:
    done = trace("plain")
    lines = done.stdout.splitlines()
    first = next(line for line in lines if line.startswith("0 "))
    leaf = next(line for line in lines if "AccumulateGrad 0.up.weight" in line)
    middle = next(line for line in lines if "PowBackward0" in line)

    assert done.returncode == MATCH
    assert lines[0] == "my_traces:plain: 17 nodes in backward order"
    assert lines[1].split() == ["node", "module", "received", "returned", "from"]
    assert first.split()[:4] == ["0", "MeanBackward0", "float32[]", "|1|"]
    assert first.endswith("return y.mean()")
    assert "float32[6, 4] |" in leaf
    assert middle.split()[2] == "0"
    assert "my_traces.py:" in middle
    assert middle.endswith("return x.square()")


def test_no_line_is_cut(trace: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "20")

    assert max(map(len, trace("plain").stdout.splitlines())) > 100


def test_a_backward_within_another_is_told_apart(trace: Command) -> None:
    nodes = read(trace("reentrant", "--json", "-")).nodes
    own = next(node for node in nodes if node.name == "CheckpointFunctionBackward")
    table = trace("reentrant").stdout

    assert {node.parent for node in nodes if node.backward} == {own.index}
    assert f"1 in {own.index}" in table


def test_what_is_recomputed_has_no_line_of_ours(trace: Command) -> None:
    sources = {node.source for node in read(trace("reentrant", "--json", "-")).nodes if node.source}

    assert {Path(source).name.partition(":")[0] for source in sources} == {"my_traces.py"}


def test_what_the_target_prints_is_no_part_of_the_report(trace: Command) -> None:
    done = trace("talking", "--json", "-")

    assert len(read(done).nodes) == read(done).total == 17
    assert "about to begin" in done.stderr


def test_a_seed_says_what_is_shown(trace: Command) -> None:
    first, again, other = (trace("plain", "--json", "-", "--seed", seed).stdout for seed in ("1", "1", "2"))

    assert first == again
    assert msgspec.json.decode(first)["nodes"] != msgspec.json.decode(other)["nodes"]


def test_where_nan_comes_up_first_is_said(trace: Command) -> None:
    done = trace("zero_over_zero", "--nonfinite")

    assert "not finite first in the backward: what node 1, DivBackward0, returned (my_traces.py:" in done.stdout
    assert "NaN first in the forward: div gives it (my_traces.py:" in done.stdout
    assert "SumBackward0" not in done.stdout


def test_help_says_what_its_exit_codes_mean(inline: Command) -> None:
    done = inline("trace", "--help")

    assert done.returncode == 0
    assert "0 shown, and the runs agree; 1 with --against, they part; 2 the call is wrong" in " ".join(done.stdout.split())


# what is shown ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "shown"),
    [
        (("--node", "addmm"), {"AddmmBackward0"}),
        (("--module", "0.down", "--leaves"), {"0.down.bias", "0.down.weight"}),
        (("--module", "0", "--node", "pow"), {"PowBackward0"}),
        (("--from", "1", "--to", "2"), {"AddmmBackward0", "1.bias"}),
        (("--nonfinite",), set()),
    ],
)
def test_filters_say_which_nodes_are_shown(trace: Command, filters: tuple[str, ...], shown: set[str]) -> None:
    found = read(trace("plain", "--json", "-", *filters))

    assert {node.leaf or node.name for node in found.nodes} == shown
    assert found.total == 17
    assert f"{len(found.nodes)} of 17 nodes" in trace("plain", *filters).stdout


def test_a_picture_is_folded_by_module(trace: Command, tmp_path: Path) -> None:
    done = trace("plain", "--svg", str(tmp_path / "plain.svg"))
    texts = [element.text or "" for element in ElementTree.parse(tmp_path / "plain.svg").iter(f"{SVG}text")]

    assert done.stdout == trace("plain").stdout
    assert len(texts) <= 3 * MOST + 1
    assert {"MeanBackward0", "0.up.weight", "PowBackward0"} <= set(texts)


def test_a_picture_marks_what_differs(trace: Command, tmp_path: Path) -> None:
    trace("broken", "--against", "my_traces:plain", "--svg", str(tmp_path / "broken.svg"))
    boxes = list(ElementTree.parse(tmp_path / "broken.svg").iter(f"{SVG}g"))
    marked = {box.findtext(f"{SVG}text") for box in boxes if box.find(f"{SVG}rect[@fill='#fde3b8']") is not None}

    assert {"0.up.weight", "0.up.bias"} <= marked
    assert not marked & {"MeanBackward0", "0.down.weight"}


# two runs -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["plain", "reentrant", "nonreentrant"])
def test_runs_that_agree_do_not_part(trace: Command, target: str) -> None:
    done = trace(target, "--against", "my_traces:plain")

    assert done.returncode == MATCH
    assert f"my_traces:{target} (subject) and my_traces:plain (reference) do not part: " in done.stdout


@pytest.mark.parametrize("target", ["broken", "broken_in_checkpoint"])
def test_a_wrong_rule_is_named_and_shown_side_by_side(trace: Command, target: str) -> None:
    done = trace(target, "--against", "my_traces:plain")
    lines = done.stdout.splitlines()
    first = next(place for place, line in enumerate(lines) if line.startswith("ref"))

    assert done.returncode == FAULT
    assert lines[1].startswith("SquareBackward ")
    assert " hands AddmmBackward0 (module '0.up') another gradient: " in lines[1]
    assert "MeanBackward0" not in done.stdout
    assert "PowBackward0" in lines[first + 1]
    assert "SquareBackward" in lines[first + 3]


def test_a_recomputation_that_differs_is_shown_with_its_values(trace: Command) -> None:
    found = read(trace("forgetful", "--against", "my_traces:plain", "--json", "-"))

    assert found.exit_code == FAULT
    assert found.side_by_side is not None
    assert found.side_by_side.divergence is not None
    assert found.side_by_side.divergence.kind == "recompute-differs"
    assert {pair.path for pair in found.side_by_side.operations} >= {"dropout"}
    assert all(pair.differs for pair in found.side_by_side.operations)


def test_that_one_of_two_raises_is_where_they_part(trace: Command) -> None:
    done = trace("raising", "--against", "my_traces:plain")

    assert done.returncode == FAULT
    assert "the subject alone raises RuntimeError at FailingBackward: not today" in done.stdout


def test_runs_with_nothing_in_common_were_not_compared(trace: Command) -> None:
    done = trace("something_else", "--against", "my_traces:plain")

    assert done.returncode == INCONCLUSIVE
    assert "nothing was compared" in done.stdout


# wrong calls --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("NUMBER",), "is of type int, not callable. Write a callable without arguments"),
        (("takes_arguments",), "needs arguments: x, scale. Write a callable without arguments"),
        (("returns_nothing",), "returned NoneType with no tensor that requires grad, and ran no backward. Return the outputs"),
        (("exits",), "raised SystemExit: 7."),
        (("plane",), "my_traces has no attribute 'plane'. It has: "),
        (("plain", "--against", "my_traces:plane"), "`against`='my_traces:plane': my_traces has no attribute 'plane'."),
        (("plain", "--module", "0.upp"), "`module`='0.upp' has no node in this backward. There are: 0.up"),
        (("plain", "--node", "Adm"), "`node`='Adm' is part of no node's name in this backward."),
        (("plain", "--from", "20"), "`from`=20 is no node of this backward. Write an index from 0 to 16."),
        (("plain", "--from", "3", "--to", "2"), "`to`=2 comes before `from`=3. Write one from 3 on."),
        (("plain", "--svg", "-"), "`svg`='-' stands for no file. Write the path of one."),
        (("plain", "--svg", "/"), "`svg`='/' is a folder."),
        (("plain", "--json", "/"), "`json`='/' is a folder."),
    ],
)
def test_a_wrong_call_says_what_to_write_instead(trace: Command, arguments: tuple[str, ...], said: str) -> None:
    done = trace(*arguments)

    assert done.returncode == WRONG_CALL
    assert done.stderr.startswith("gradcheck-plus: error: `")
    assert said in done.stderr
    assert not done.stdout


@pytest.mark.parametrize("against", [(), ("--against", "my_traces:raising")])
def test_an_exception_of_the_target_is_shown_as_its_own(trace: Command, against: tuple[str, ...]) -> None:
    done = trace("raising", *against)
    shown, _, message = done.stderr.rpartition("gradcheck-plus: error: ")

    assert done.returncode == WRONG_CALL
    assert shown.startswith("Traceback (most recent call last):\n")
    assert 'raise RuntimeError("not today\\nnor tomorrow")' in shown
    assert "gradcheck_plus/" not in shown
    assert message.startswith("`target`='my_traces:raising' raises RuntimeError")
    assert message.count("\n") == 1


def test_an_interrupt_ends_it(trace: Command) -> None:
    done = trace("interrupted")

    assert (done.returncode, done.stderr) == (INCONCLUSIVE, "gradcheck-plus: interrupted\n")
