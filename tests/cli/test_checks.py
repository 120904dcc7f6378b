"""`gradcheck-plus check`: what it says of right and of wrong implementations, and what it leaves behind."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from gradcheck_plus.replay import Replay
from gradcheck_plus.results import FAULT, INCONCLUSIVE, MATCH

Command = Callable[..., CompletedProcess[str]]

MODULE = ("check", "module", "--inputs", "my_modules:sample", "--max-examples", "10")


def check(run: Command, kind: str, target: str, out: Path, *options: str) -> CompletedProcess[str]:
    """Check an implementation of the project, with all that it leaves in one folder."""
    return run("check", kind, target, "--max-examples", "20", "--out", str(out), "--json", str(out / "r.json"), *options)


def checks(out: Path) -> Any:
    """Return the checks of a report."""
    return json.loads((out / "r.json").read_text(encoding="utf-8"))["checks"]


@pytest.mark.parametrize(
    ("kind", "target", "name"),
    [
        ("checkpoint", "my_checkpoints:plain", "plain"),
        ("checkpoint", "my_checkpoints.py:plain", "plain"),
        ("checkpoint", "my_checkpoints:instance", "Instance"),
        ("checkpoint", "my_checkpoints:wraps_torch", "wraps_torch"),
        ("wrapper", "my_checkpoints:wraps", "wraps"),
        ("stage-backward", "my_stages:plain", "plain"),
        ("split-backward", "my_stages:plain_input + my_stages:plain_weight", "plain_input"),
    ],
)
def test_a_right_implementation_passes_and_leaves_the_report_only(
    kind: str, target: str, name: str, inline: Command, tmp_path: Path
) -> None:
    done = check(inline, kind, target, tmp_path)

    assert done.returncode == MATCH, done.stdout + done.stderr
    assert done.stdout.startswith(f"MATCH: {kind} {name} ({target}), contract {kind}: ")
    assert not done.stderr
    (one,) = checks(tmp_path)
    assert (one["verdict"], one["faults"], one["target"]) == ("match", [], target)
    assert one["cases"]["judged"] > 10
    assert [file.name for file in tmp_path.iterdir()] == ["r.json"]


@pytest.mark.parametrize(
    ("kind", "target", "found"),
    [
        ("checkpoint", "my_checkpoints:scales", ("value", "")),
        ("checkpoint", "my_checkpoints:raises", ("raises", "ValueError")),
        ("checkpoint", "my_checkpoints:leaves", ("raises", "SystemExit")),
        ("checkpoint", "my_checkpoints:gives_up", ("raises", "GeneratorExit")),
        ("checkpoint", "my_checkpoints:raises_beyond_ascii", ("raises", "ValueError")),
        ("checkpoint", "my_checkpoints:raises_unprintable", ("raises", "Unprintable")),
        ("checkpoint", "my_checkpoints:returns_text", ("structure", "")),
        ("checkpoint", "my_checkpoints:returns_object", ("structure", "")),
        ("checkpoint", "my_checkpoints:draws_anew", ("not-repeatable", "")),
        ("wrapper", "my_checkpoints:Prefixed", ("state", "")),
        ("wrapper", "my_checkpoints:wraps_nothing", ("raises", "TypeError")),
        ("stage-backward", "my_stages:forgets", ("presence", "")),
    ],
)
def test_a_wrong_implementation_is_reported_with_its_fault_a_repro_and_a_replay(
    kind: str, target: str, found: tuple[str, str], inline: Command, tmp_path: Path
) -> None:
    done = check(inline, kind, target, tmp_path)

    assert done.returncode == FAULT, done.stdout + done.stderr
    (one,) = checks(tmp_path)
    (fault,) = one["faults"]
    assert (fault["kind"], fault["error"]) == found
    assert done.stdout.startswith(f"FAULT: {kind} {target.partition(':')[2]} ({target}), contract {kind}: 1 distinct fault; ")
    for said in (fault["fingerprint"], f"repro: python {tmp_path}/{fault['repro']}", f"replay {tmp_path}/{fault['replay']}"):
        assert said in done.stdout
    assert sorted(f.name for f in tmp_path.iterdir()) == sorted(["r.json", fault["repro"], fault["replay"]])
    assert Replay.read(tmp_path / fault["replay"]).target == target


def test_a_backward_in_two_passes_is_named_by_two_targets_and_replayed_by_both(inline: Command, tmp_path: Path) -> None:
    passes = ("my_stages:plain_input", "my_stages:idle_weight")
    done = inline("check", "split-backward", *passes, "--max-examples", "20", "--out", str(tmp_path))
    file = next(tmp_path.glob("case_*.json"))

    assert done.returncode == FAULT, done.stdout + done.stderr
    assert Replay.read(file).target == " + ".join(passes)
    assert "subject = first, second" in next(tmp_path.glob("repro_*.py")).read_text(encoding="utf-8")
    assert inline("replay", str(file)).returncode == FAULT
    assert inline("replay", str(file), "--target", "my_stages:plain_input + my_stages:plain_weight").returncode == MATCH


def test_the_repro_fails_as_long_as_the_fault_is_there(inline: Command, project: Path, tmp_path: Path) -> None:
    """It is a program of its own, which a reader runs where the implementation can be imported."""
    check(inline, "checkpoint", "my_checkpoints:scales", tmp_path)
    repro = next(tmp_path.glob("repro_*.py"))
    mended = tmp_path / "mended.py"
    text = repro.read_text(encoding="utf-8")
    assert "from my_checkpoints import scales" in text
    mended.write_text(text.replace("import scales", "import plain"), encoding="utf-8")

    codes = {}
    for program in (repro, mended):
        program.rename(project / program.name)
        codes[program.name] = subprocess.run([sys.executable, program.name], cwd=project, capture_output=True, check=False)
    assert b"AssertionError" in codes[repro.name].stderr
    assert codes[repro.name].returncode == 1
    assert codes["mended.py"].returncode == 0, codes["mended.py"].stderr.decode()


def test_only_the_first_fault_is_reported_unless_one_keeps_going(inline: Command, tmp_path: Path) -> None:
    options = ("--max-examples", "100", "--trait", "kwarg-tensor", "--trait", "eval")
    check(inline, "checkpoint", "my_checkpoints:faulty_twice", tmp_path / "one", *options)
    check(inline, "checkpoint", "my_checkpoints:faulty_twice", tmp_path / "all", *options, "--keep-going")

    assert len(checks(tmp_path / "one")[0]["faults"]) == 1
    kinds = {(fault["kind"], *fault["trigger"]) for fault in checks(tmp_path / "all")[0]["faults"]}
    assert {("raises", "kwarg-tensor"), ("value", "eval")} <= kinds


def test_a_known_fault_of_torch_is_excused_by_name_unless_it_is_not_to_be(inline: Command, tmp_path: Path) -> None:
    """As of torch's own checkpoint, so of one that calls it."""
    options = ("--trait", "random-activation", "--max-examples", "60")
    known = check(inline, "checkpoint", "my_checkpoints:wraps_torch", tmp_path / "known", *options)
    told = check(inline, "checkpoint", "my_checkpoints:wraps_torch", tmp_path / "told", *options, "--no-known")

    assert known.returncode == MATCH, known.stdout
    assert checks(tmp_path / "known")[0]["known"][0]["trait"] == "random-activation"
    assert "excused as known faults:" in known.stdout
    assert told.returncode == FAULT
    assert not checks(tmp_path / "told")[0]["known"]
    assert "torch-checkpoint" in checks(tmp_path / "told")[0]["faults"][0]["also_fails"]


def test_a_contract_of_ones_own_excuses_what_it_names(inline: Command, tmp_path: Path) -> None:
    text = 'name = "ours"\ndoc = "Ours."\n[[expectation]]\ntrait = "*"\neffect = "refuses"\nsource = "our handbook"\n'
    (tmp_path / "ours.toml").write_text(text, encoding="utf-8")
    contract = ("--contract", str(tmp_path / "ours.toml"))

    refusing = check(inline, "checkpoint", "my_checkpoints:raises", tmp_path, *contract)
    assert refusing.returncode == INCONCLUSIVE, "a subject that refuses every case was not judged"
    assert "contract ours: no case was judged: of 20, 20 refused by the subject" in refusing.stdout
    assert check(inline, "checkpoint", "my_checkpoints:scales", tmp_path, *contract).returncode == FAULT


def test_a_trait_that_was_asked_for_and_never_judged_is_inconclusive(inline: Command, tmp_path: Path) -> None:
    done = check(inline, "checkpoint", "my_checkpoints:plain", tmp_path, "--trait", "kwarg-tensor", "--max-examples", "1")

    assert done.returncode == INCONCLUSIVE
    assert checks(tmp_path)[0]["reason"] == "no judged case has kwarg-tensor"


# modules ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factory", "inputs"),
    [
        ("Linear", "sample"),
        ("Linear", "constant"),
        ("Linear", "keywords"),
        ("Linear", "both"),
        ("Normalised", "sample"),
        ("DictOutput", "sample"),
        ("DataclassOutput", "sample"),
        ("TakesBatch", "batch"),
    ],
)
def test_a_module_that_can_be_checkpointed_passes(factory: str, inputs: str, inline: Command, tmp_path: Path) -> None:
    target = f"my_modules:{factory}"
    done = inline(*MODULE, target, "--inputs", f"my_modules:{inputs}", "--out", str(tmp_path), "--subject", "torch-checkpoint")

    assert done.returncode == MATCH, done.stdout + done.stderr
    assert done.stdout.startswith(f"MATCH: module torch-checkpoint ({target}), contract checkpoint: ")


def test_a_module_is_checked_under_every_built_in_checkpoint(inline: Command, tmp_path: Path) -> None:
    done = inline(*MODULE, "my_modules:Linear", "--json", str(tmp_path / "r.json"), "-q")

    assert done.returncode == MATCH, done.stdout
    names = [one["name"] for one in checks(tmp_path)]
    assert names == ["torch-checkpoint", "torch-checkpoint-reentrant", "torch-save-on-cpu"]
    assert [line.split(" (")[0] for line in done.stdout.splitlines()] == [f"MATCH: module {name}" for name in names]


def test_a_module_that_is_another_function_at_every_call_is_a_fault(inline: Command, tmp_path: Path) -> None:
    done = inline(*MODULE, "my_modules:Counting", "--out", str(tmp_path), "--subject", "torch-checkpoint")

    assert done.returncode == FAULT, done.stdout
    assert "value of primal" in done.stdout
    assert len(list(tmp_path.glob("repro_*.py"))) == 1
