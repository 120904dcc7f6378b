"""A repro is a whole program: it runs where the case ran, under the settings it ran under."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from msgspec.structs import replace

from gradcheck_plus.campaign.runner import differentiable_outputs
from gradcheck_plus.case import Case, Primal, Spec
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.execute.sampling import sampled
from gradcheck_plus.execute.world import undisturbed
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.operations.device import WORKSPACE
from gradcheck_plus.repro import repro
from gradcheck_plus.subject import KINDS, Kind

Write = Callable[..., Case]
WRONG = Mismatch("value", "primal", "x0.grad", "tensor([1])", "tensor([2])")
CUBE = Primal("x0", Spec((2, 2, 3), requires_grad=True))


def printed(case: Case, mismatch: Mismatch = WRONG, kind: Kind = "checkpoint", *, device: str = "cpu", target: str = "") -> str:
    """Return the repro of a case, with the outputs that it has on a CPU."""
    outputs = {(s, path): (shape, dtype) for s, path, shape, dtype in differentiable_outputs(execute(case, reference(kind)))}
    return repro(case, mismatch, kind, outputs, target=target, title="A title.", device=device)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("device", ["cuda", "cuda:1"])
def test_a_program_for_cuda_has_nothing_on_the_cpu(kind: Kind, device: str, drawn: Mapping[Kind, Sequence[Case]]) -> None:
    for case in drawn[kind][:100]:
        text = printed(case, kind=kind, device=device)
        compile(text, "<repro>", "exec")

        assert "cpu" not in text
        assert re.search(rf"model = Model\(\)\.to\('{device}'[,)]", text)
        assert ("DEVICE" not in text) or f"DEVICE, DTYPE = '{device}', torch.float32" in text
        assert text.count('torch.autocast("cuda"') == text.count("torch.autocast(")
        made = re.findall(r"torch\.(?:arange|rand|ones|zeros|full|tensor)\([^\n]*", text)
        assert [line for line in made if "device=DEVICE" not in line] == []


def test_a_program_for_cuda_computes_the_same_bits_every_time(write: Write) -> None:
    """Or plain autograd would already differ from itself."""
    text = printed(write("h0 = sin(x0)"), device="cuda")

    assert "    torch.use_deterministic_algorithms(True, warn_only=True)\n" in text
    assert f"    os.environ.setdefault{WORKSPACE!r}\n" in text
    assert "torch.backends.cudnn.allow_tf32 = False\n" in text
    assert text.count("import os\n") == 1


def test_a_program_for_a_cpu_is_spared_that(write: Write) -> None:
    text = printed(write("h0 = sin(x0)"))

    assert "import os" not in text
    assert "torch.backends" not in text
    assert "deterministic" not in text


@pytest.mark.parametrize(("train", "device", "off"), [(True, "cuda", False), (False, "cuda", True), (False, "cpu", False)])
def test_recurrent_layers_in_eval_mode_do_without_cudnn(write: Write, train: bool, device: str, off: bool) -> None:
    """It has no backward there."""
    text = printed(write("h0 = rnn(x0)", primals=[CUBE], train=train), device=device)

    assert ("torch.backends.cudnn.enabled = False" in text) == off


@pytest.mark.parametrize(("device", "read"), [("cuda", "('cuda')"), ("cuda:1", "('cuda:1')")])
def test_the_generator_that_differs_is_the_one_that_is_read(write: Write, device: str, read: str) -> None:
    state = Mismatch("state", "rng", f"torch.cuda.get_rng_state{read} after forward", "the reference's state", "another state")

    assert f"    return torch.cuda.get_rng_state{read}\n" in printed(write("h0 = sin(x0)"), state, device=device)


def test_random_numbers_are_those_of_the_case(write: Write) -> None:
    """Whatever constructors drew before."""
    case = write("h0 = linear(x0)", "h1 = dropout(h0)", primals=[CUBE])
    expected = execute(case, reference("checkpoint")).tensors["primal", "x0.grad"]

    assert torch.equal(result(printed(case))["expected"], expected)  # type: ignore[arg-type]


MODULE = """
import torch
from torch import nn


def make():
    return nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.5))


def tensor():
    return torch.rand(2, 3)


def both():
    return (torch.rand(2, 3),), {}


fixed = {"input": torch.ones(2, 3)}
"""


@pytest.mark.parametrize("sample", ["tensor", "both", "fixed"])
def test_a_module_of_a_users_own_is_run_as_it_is(
    sample: str, write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the parameters that it makes itself, on its own sample call."""
    (tmp_path / "own_module.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_module", raising=False)
    found = sampled("own_module:make", f"own_module:{sample}", "cpu")
    case = replace(write("h0 = sin(x0)"), program=found.program, primals=found.primals)
    expected = execute(case, reference("checkpoint"))

    assert expected.raised is None
    assert torch.equal(result(printed(case))["expected"], expected.tensors["primal", "x0.grad"])  # type: ignore[arg-type]
    assert "model = Model().to('cuda')\n" in printed(case, device="cuda")


@pytest.mark.parametrize("attribute", ["scales", "Holder.scales"])
@pytest.mark.parametrize("name", ["my_remat.py", "my-remat.py", "my mod é.py", "my.remat.py", "class.py", "3d.py"])
def test_an_implementation_in_a_file_of_any_name_is_loaded_and_named_in_one_line(
    name: str, attribute: str, write: Write, beside: Path
) -> None:
    """That line is what one replaces to try another implementation."""
    (beside / name).write_text(CHECKPOINTS, encoding="utf-8")
    text = printed(write("h0 = sin(x0)"), target=f"{beside / name}:{attribute}")

    assert len(re.findall(SUBJECT, text)) == 1
    with pytest.raises(AssertionError, match="Tensor-likes are not equal"):
        exec(compile(text, "<repro>", "exec"), {"__name__": "repro"})
    result(text)


def test_an_implementation_in_a_module_that_no_statement_can_import_is_loaded_too(write: Write, beside: Path) -> None:
    """The command line takes it, and so must the repro."""
    (beside / "my-remat.py").write_text(CHECKPOINTS, encoding="utf-8")
    text = printed(write("h0 = sin(x0)"), target="my-remat:scales")

    assert len(re.findall(SUBJECT, text)) == 1
    with pytest.raises(AssertionError, match="Tensor-likes are not equal"):
        exec(compile(text, "<repro>", "exec"), {"__name__": "repro"})


@pytest.mark.parametrize("code", [0, None, 3])
def test_a_subject_that_leaves_has_a_repro_that_fails_whatever_it_leaves_with(
    code: int | None, write: Write, beside: Path
) -> None:
    (beside / "leaving.py").write_text(f"import sys\n\ndef leaves(*_):\n    sys.exit({code})\n", encoding="utf-8")
    raised = Mismatch("raises", "call", "forward", "no exception", "SystemExit", error="SystemExit")
    text = printed(write("h0 = sin(x0)"), raised, target="leaving:leaves")

    with pytest.raises(AssertionError, match="the subject leaves"):
        exec(compile(text, "<repro>", "exec"), {"__name__": "repro"})
    result(text)


@pytest.mark.parametrize("kind", ["crash", "hang"])
def test_a_repro_whose_exit_code_says_nothing_says_so(kind: Any, write: Write) -> None:
    """Nobody can fail for a process that `os._exit(0)` has ended."""
    lost = Mismatch(kind, "call", "forward or backward", "an answer", "the process ended: exit code 0")

    assert "does not come back, whatever exit code it leaves with.\nrun(subject)" in printed(write("h0 = sin(x0)"), lost)


#: How tests, and users, find the line that names the implementation.
SUBJECT = r"(?m)^(from .+ import .+ as subject|subject = .+)$"
CHECKPOINTS = """
from factors import factor


def scales(function, *args):
    return function(*args) * factor


class Holder:
    scales = scales
"""


@pytest.fixture
def beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that can be imported from; what is imported meanwhile is forgotten again."""
    (tmp_path / "factors.py").write_text("factor = 2", encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "modules", dict(sys.modules))
    return tmp_path


def result(text: str) -> dict[str, Any]:
    """Run a repro with plain autograd in the place of the subject; return its names."""
    scope: dict[str, Any] = {"__name__": "repro"}
    text = text.replace("run(subject)", "run(plain_checkpoint)")
    with undisturbed("cpu", poison=False):
        exec(compile(text, "<repro>", "exec"), scope)
    return scope
