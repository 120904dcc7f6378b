"""A wrong call ends with exit code 2 and a message that says what to write instead, before anything is run or written."""

from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
import torch

from gradcheck_plus.results import MATCH, WRONG_CALL

Command = Callable[..., CompletedProcess[str]]

CHECKPOINT = ("check", "checkpoint")
PLAIN = (*CHECKPOINT, "my_checkpoints:plain", "--max-examples", "3")
MODULE = ("check", "module", "--subject", "identity", "--max-examples", "3")


def refused(done: CompletedProcess[str], *fragments: str) -> None:
    """Assert that a call was refused, with a message that holds the fragments."""
    assert done.returncode == WRONG_CALL, done.stdout + done.stderr
    assert done.stderr.startswith("gradcheck-plus: error: `"), done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    assert not done.stdout
    for fragment in fragments:
        assert fragment in done.stderr


# targets ----------------------------------------------------------------------------------------------------------------

FORM = "Write `package.module:attribute` or `path/to/file.py:attribute`."
BROKEN = {
    "broken_raises.py": "raise RuntimeError('not today\\nnor tomorrow')",
    "broken_exits.py": "import sys\nsys.exit(7)",
    "broken_syntax.py": "def checkpoint(:",
    "broken_getattr.py": "def __getattr__(name):\n    raise RuntimeError(f'{name}, of all things')",
}


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("my_checkpoints", f"`target`='my_checkpoints' has no attribute. {FORM}"),
        ("my_checkpoints.py", f"`target`='my_checkpoints.py' has no attribute. {FORM}"),
        ("my_checkpoints:", f"has no attribute. {FORM}"),
        (":plain", FORM),
        ("", FORM),
        ("no_such_module:plain", f"ModuleNotFoundError: No module named 'no_such_module'. {FORM}"),
        (".relative:plain", FORM),
        ("no_such_file.py:plain", f"there is no file 'no_such_file.py'. {FORM}"),
        ("my_checkpoints:plian", "my_checkpoints has no attribute 'plian'. It has: "),
        ("my_checkpoints.py:plain.nothing", "has no attribute 'nothing'"),
        ("my_checkpoints:NUMBER", "is of type int, not callable. Write a callable (function, *args, **kwargs)."),
        ("my_checkpoints:takes_nothing", "cannot be called as (function, *args, **kwargs): "),
        ("my_checkpoints:takes_keywords_only", "cannot be called as (function, *args, **kwargs): "),
        ("os:getcwd", "cannot be called as (function, *args, **kwargs): "),
        ("broken_raises:checkpoint", "importing 'broken_raises' failed: RuntimeError: not today. "),
        ("broken_raises.py:checkpoint", "running 'broken_raises.py' failed: RuntimeError: not today."),
        ("broken_exits:checkpoint", "SystemExit: 7"),
        ("broken_exits.py:checkpoint", "SystemExit: 7"),
        ("broken_syntax:checkpoint", "SyntaxError"),
        ("broken_getattr:checkpoint", "RuntimeError: checkpoint, of all things"),
    ],
)
def test_a_target_that_cannot_be_used_is_refused(target: str, said: str, project: Path, inline: Command) -> None:
    for name, text in BROKEN.items():
        (project / name).write_text(text, encoding="utf-8")

    refused(inline(*CHECKPOINT, target), f"`target`={target!r}", said)


@pytest.mark.parametrize(
    ("option", "call"),
    [
        ("target", (*CHECKPOINT, "caf\udce9.py:plain")),
        ("target", ("check", "module", "caf\udce9.py:Linear", "--inputs", "my_modules:sample")),
        ("inputs", ("check", "module", "my_modules:Linear", "--inputs", "caf\udce9.py:sample")),
        ("contract", (*PLAIN, "--contract", "caf\udce9.toml")),
        ("out", (*PLAIN, "--out", "caf\udce9.out")),
    ],
)
def test_a_file_whose_name_is_no_text_is_refused(option: str, call: tuple[str, ...], command: Command, project: Path) -> None:
    """A report could not say it."""
    (project / "caf\udce9.toml").write_text(contract(), encoding="utf-8")

    refused(command(*call), f"`{option}`='caf\\udce9.", " is not UTF-8. Write another name.")


@pytest.mark.parametrize("name", ["takes_nothing", "takes_two", "takes_keywords_only"])
def test_a_stage_backward_must_take_its_three_arguments(name: str, inline: Command) -> None:
    done = inline("check", "stage-backward", f"my_checkpoints:{name}")

    refused(done, "cannot be called as (stage_output, output_grads, input_values): ")


def test_what_only_the_worker_can_see_is_refused_as_well(command: Command, project: Path) -> None:
    """The same message as from the process that parses, and no word of the other one."""
    done = command(*CHECKPOINT, "no_such_module:plain", "--json", "never.json")

    refused(done, f"importing 'no_such_module' failed: ModuleNotFoundError: No module named 'no_such_module'. {FORM}")
    assert not (project / "never.json").exists()


# contracts --------------------------------------------------------------------------------------------------------------

ENTRY = {"trait": '"dropout"', "effect": '"limit"', "source": '"https://example.com"', "kind": '["value"]'}


def contract(**changes: str) -> str:
    """Return a contract with one entry, some of whose fields are other than they should be."""
    entry = "\n".join(f"{field} = {value}" for field, value in {**ENTRY, **changes}.items())
    return f'name = "ours"\ndoc = "Ours."\n[[expectation]]\n{entry}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (contract(trait='"droput"'), "`trait`='droput' is not known. Did you mean 'dropout'?"),
        (contract(source='"  "'), "a limit without a public source is a fault"),
        (contract(effect='"forgives"'), "Invalid enum value 'forgives'"),
        (contract(kind='["valeu"]'), "valeu"),
        (contract(kind='"value"'), "Expected `array`"),
        (contract(roel='["primal"]'), "unknown field `roel`"),
        (contract(role='["paramter"]'), "paramter"),
        (contract(subject='"torch-chekpoint"'), "torch-chekpoint"),
        (contract(torch='"newest"'), "newest"),
        (contract(leaf='"("'), "leaf"),
        ('extends = ["reentrnat"]\n' + contract(), "`contract`='reentrnat' is not known. Did you mean 'reentrant'?"),
        ('extends = ["FILE"]\n' + contract(), "extends"),
        ("name = 'ours", "is not a contract: "),
        ("name = '\udcff'", "is not a contract: "),
        ("", "Object missing required field `name`"),
    ],
)
def test_a_contract_that_says_nothing_sensible_is_refused(text: str, said: str, tmp_path: Path, inline: Command) -> None:
    """Whether or not a case ever comes to it: what is misspelt would excuse too little or too much in silence."""
    file = tmp_path / "refused.toml"
    file.write_bytes(text.replace("FILE", file.as_posix()).encode(errors="surrogateescape"))

    refused(inline(*PLAIN, "--contract", str(file)), said)


def test_contracts_that_extend_each_other_are_refused(tmp_path: Path, inline: Command) -> None:
    """Those that extend a third one both are not."""
    one, other, both = (tmp_path / name for name in ("one.toml", "other.toml", "both.toml"))
    one.write_text(f"extends = ['{other}']\n" + contract(), encoding="utf-8")
    other.write_text(f"extends = ['{tmp_path}/./one.toml']\n" + contract(), encoding="utf-8")
    both.write_text("extends = ['reentrant', 'save-on-cpu', 'strict']\n" + contract(), encoding="utf-8")

    refused(inline(*PLAIN, "--contract", str(one)), "`extends`=", "leads back to one that extends it.")
    assert inline(*PLAIN, "--contract", str(both)).returncode == MATCH


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("reentrnat", "`contract`='reentrnat' is not known. Did you mean 'reentrant'? `gradcheck-plus list contracts`"),
        ("no/such/contract.toml", "`contract`='no/such/contract.toml': there is no such file."),
        ("./", "`contract`='./': there is no such file."),
    ],
)
def test_a_contract_that_is_not_there_is_refused(name: str, said: str, inline: Command) -> None:
    refused(inline(*PLAIN, "--contract", name), said)


# options ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--trait droput", "`trait`='droput' is not known. Did you mean 'dropout'? `gradcheck-plus list traits` shows all"),
        ("--no-trait droput", "`trait`='droput' is not known. Did you mean 'dropout'?"),
        ("--trait reversed-keys", "`trait`='reversed-keys' cannot be aimed at for `kind`='checkpoint'"),
        ("--trait several-outputs", "`trait`='several-outputs' cannot be aimed at"),
        ("--trait float64 --dtype float32", "`trait`='float64' cannot be aimed at"),
        ("--trait dropout --no-trait dropout", "`trait`='dropout'"),
        ("--trait nested-input --contract reentrant", "`trait`='nested-input': the contract excuses whatever a subject does"),
        ("--operation sine", "`operation`='sine' is not known. Did you mean 'sin' or "),
        ("--dtype int8", "`dtype`='int8' is not drawn. Write one of float32, float64, bfloat16, float16."),
        ("--device nonsense", "`device`='nonsense' is not supported. Write cpu, cuda or cuda:<index>."),
        ("--device cpu:0", "`device`='cpu:0'"),
        ("--device cuda:first", "`device`='cuda:first'"),
        ("--max-examples 0", "`max_examples`=0 runs nothing. Write at least 1."),
        ("--max-examples -5", "`max_examples`=-5 runs nothing."),
        ("--time-budget 0", "`time_budget`=0.0 leaves no time. Write a positive number of seconds."),
        ("--time-budget -1", "`time_budget`=-1.0 leaves no time."),
        ("--time-budget nan", "`time_budget`=nan leaves no time."),
        ("--case-timeout 0", "`case_timeout`=0.0 ends every case. Write a positive number of seconds."),
        ("--case-timeout nan", "`case_timeout`=nan ends every case."),
    ],
)
def test_an_option_that_cannot_be_used_is_refused(options: str, said: str, inline: Command) -> None:
    refused(inline(*PLAIN, *options.split()), said)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device here")
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_device_that_is_not_there_is_refused(device: str, inline: Command) -> None:
    refused(inline(*PLAIN, "--device", device), f"`device`='{device}': this torch", "sees no CUDA device. Write `cpu`.")


def test_a_device_beyond_the_last_one_is_refused(inline: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)

    refused(inline(*PLAIN, "--device", "cuda:2"), "`device`='cuda:2': there are 2 CUDA devices. Write one up to `cuda:1`.")


@pytest.mark.parametrize("seconds", ["inf", "1e12"])
def test_there_may_be_no_limit_in_time(seconds: str, command: Command) -> None:
    assert command(*PLAIN, "-q", "--case-timeout", seconds, "--time-budget", seconds).returncode == 0


# files ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--json", "--out"])
@pytest.mark.parametrize("place", ["my_checkpoints.py/report", "a-folder/../my_checkpoints.py/report"])
def test_a_place_that_cannot_be_written_to_is_refused_before_an_hour_has_passed(
    option: str, place: str, inline: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not after it, with the result lost: the subject is not run at all."""
    monkeypatch.setattr("gradcheck_plus.campaign.campaign.Campaign.run", pytest.fail)

    refused(inline(*CHECKPOINT, "my_checkpoints:scales", "--max-examples", "3", option, place), repr(place))


def test_a_report_in_the_place_of_a_folder_leaves_nothing_behind(inline: Command, project: Path, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()

    refused(inline(*PLAIN, "--json", str(tmp_path / "folder")), "folder")
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


# modules ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("factory", "inputs", "said"),
    [
        ("instance", "sample", "`target`='my_modules:instance' is Linear. Write a callable that makes a new nn.Module."),
        ("constant", "sample", "`target`='my_modules:constant' is tuple. Write a callable that makes a new nn.Module."),
        ("raises", "sample", "`target`='my_modules:raises' raised RuntimeError: the weights are not here."),
        ("takes_one", "sample", "`target`='my_modules:takes_one' raised TypeError: "),
        ("makes_nothing", "sample", "`target`='my_modules:makes_nothing' made NoneType."),
        ("nothing", "sample", "my_modules has no attribute 'nothing'"),
        ("Linear", "nothing", "my_modules has no attribute 'nothing'"),
        ("Linear", "no_data", "`inputs`='my_modules:no_data' raised FileNotFoundError: the data are not here."),
        ("Linear", "takes_one", "`inputs`='my_modules:takes_one' raised TypeError: "),
        ("Linear", "text", "`inputs`='my_modules:text' returned str. Return a tuple of arguments, a dict of keyword"),
        ("Linear", "too_wide", "`target`='my_modules:Linear' cannot be called with `inputs`='my_modules:too_wide': "),
        ("KeywordsOnly", "sample", "cannot be called with `inputs`='my_modules:sample': TypeError: "),
        ("Detached", "sample", "no output of the sample call requires grad, so there is no gradient to compare: tensor."),
        ("Indices", "sample", "no output of the sample call requires grad"),
    ],
)
def test_a_module_that_cannot_be_checked_is_refused(factory: str, inputs: str, said: str, inline: Command) -> None:
    refused(inline(*MODULE, f"my_modules:{factory}", "--inputs", f"my_modules:{inputs}"), said)


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("torch-stage-backward", "`subject`='torch-stage-backward' is no checkpoint. Write some of torch-checkpoint, "),
        ("torch-chekpoint", "`subject`='torch-chekpoint' is not known. Did you mean 'torch-checkpoint'"),
    ],
)
def test_a_module_is_checked_under_checkpoints_only(subject: str, said: str, inline: Command) -> None:
    refused(inline("check", "module", "my_modules:Linear", "--inputs", "my_modules:sample", "--subject", subject), said)


# replays ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a replay file"),
        ('{"schema": 1', "is not a replay file: Input data was truncated."),
        ('{"schema": 1, "exit_code": 0, "tool": {}, "checks": []}', "is not a replay file: Object contains unknown field"),
        ("[]", "is not a replay file: Expected `object`"),
        ("\udcff", "is not a replay file: "),
    ],
)
def test_a_file_that_is_no_replay_is_refused(text: str, said: str, tmp_path: Path, inline: Command) -> None:
    (tmp_path / "case.json").write_bytes(text.encode(errors="surrogateescape"))

    refused(inline("replay", str(tmp_path / "case.json")), "case.json", said)


@pytest.mark.parametrize("place", ["no_such_case.json", ".", "my_checkpoints.py/case.json"])
def test_a_replay_that_cannot_be_read_is_refused(place: str, inline: Command) -> None:
    refused(inline("replay", place), f"`file`={place!r} cannot be read: ", "Write the path of a replay file.")


# what argparse says -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("", "the following arguments are required: COMMAND"),
        ("frobnicate", "invalid choice: 'frobnicate'"),
        ("check", "the following arguments are required: KIND"),
        ("check wrappers x:y", "invalid choice: 'wrappers'"),
        ("check checkpoint", "the following arguments are required: TARGET"),
        ("check module my_modules:Linear", "the following arguments are required: --inputs"),
        ("check checkpoint x:y --max-examples many", "invalid int value: 'many'"),
        ("check checkpoint x:y --time-budget long", "invalid float value: 'long'"),
        ("check checkpoint x:y -q -v", "not allowed with argument"),
        ("check checkpoint x:y --subject identity", "unrecognized arguments: --subject"),
        ("list", "the following arguments are required: what"),
        ("list everything", "invalid choice: 'everything'"),
        ("replay", "the following arguments are required: FILE"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_answered_with_usage(arguments: str, said: str, command: Command) -> None:
    done = command(*arguments.split())

    assert done.returncode == WRONG_CALL
    assert done.stderr.startswith("usage: gradcheck-plus")
    assert said in done.stderr
