"""The repro: one standalone program that proves a fault. It needs torch and the implementation under test, nothing else.

It prints the very source that ran. As it is, it fails; with plain autograd in the subject's place it passes.
"""

import ast
import re
import textwrap
from functools import cache
from importlib import resources
from keyword import iskeyword
from pathlib import Path

from gradcheck_plus.case import Case, ModuleProgram, Program
from gradcheck_plus.case.trees import names
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.repro.scenario import Outputs, boundary, scenario, settings
from gradcheck_plus.source import program_source
from gradcheck_plus.subject import CALLS, PAIR, STAGES, Kind, Planned

_WIDTH = 100
#: The parameter that the implementation under test is passed as, and plain autograd in its place.
_ARGUMENT: dict[Kind, str] = {
    "checkpoint": "checkpoint",
    "wrapper": "wrap",
    "stage-backward": "stage_backward",
    "split-backward": "pair",
}
_PLAIN: dict[Kind, str] = {
    "checkpoint": "plain_checkpoint",
    "wrapper": "plain_wrap",
    "stage-backward": "plain_stage_backward",
    "split-backward": "(plain_backward_input, plain_backward_weight)",
}


def repro(
    case: Case,
    mismatch: Mismatch,
    kind: Kind,
    outputs: Outputs,
    *,
    target: str,
    title: str,
    device: str = "cpu",
    planned: Planned = "",
) -> str:
    """Return a standalone program that fails while the fault is there.

    Args:
        case: the shrunk case.
        mismatch: how it fails.
        kind: how the implementation is called.
        outputs: shape and dtype of every output that requires grad.
        target: how to import the implementation; empty for a live object.
        title: the first line of its docstring.
        device: where tensors live.
        planned: the field of the case's plan that the target makes the implementation of.
    """
    unwritten = mismatch.kind == "not-repeatable" or "nan" in mismatch.got
    body = [
        *(["backward_input, backward_weight = pair"] if kind == "split-backward" else ()),
        *settings(case, device, poison=unwritten),
        *scenario(case, kind, outputs, device),
        *_observation(case, mismatch),
    ]
    modules = program_source(case.program, calls="none" if kind in STAGES else CALLS[kind])
    run = "\n".join([f"def run({_ARGUMENT[kind]}):", *(f"    {line}" for line in needed(body, case))])
    program = "\n\n\n".join([modules.rstrip(), run, "\n".join(_verdict(mismatch, _PLAIN[kind]))])
    program = re.sub(r"\n{3,}", "\n\n\n", program)
    used = vocabulary(program, device)
    parts = [_header(title, mismatch), imports(program + used, case, target, kind, planned), used, program]
    return "\n\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def needed(body: list[str], case: Case) -> list[str]:
    """Leave out the lines of a run whose results nothing uses."""
    program = case.program
    known = isinstance(program, Program)
    parameterless = known and not program.parameters and not any(s.module for s in program.statements)
    kept: list[str] = []
    for line in reversed(body):
        after = "\n".join(kept)
        name, assigned, value = line.partition(" = ")
        if line == "fill(model)" and parameterless:
            continue
        if (
            assigned
            and name in _INCIDENTAL
            and "model(" not in value
            and not re.search(rf"(?<![\w.]){re.escape(name)}\b", after)
        ):
            continue
        kept.insert(0, line)
    return kept


#: Variables that a run has for whatever may want to look at them.
_INCIDENTAL = ("params", "modules", "buffers", "outputs", "outputs_1")


def _header(title: str, mismatch: Mismatch) -> str:
    text = "\n".join(textwrap.wrap(title, _WIDTH, break_on_hyphens=False))
    return f'"""{text}\n\n{mismatch.leaf}: expected {mismatch.expected}, got {mismatch.got}\n"""'


def imports(text: str, case: Case, target: str, kind: Kind, planned: Planned = "") -> str:
    """Return the imports that a program needs, and the line that names the implementation under test."""
    subject = [f"subject = ...  # put the {kind} under test here"]
    if target and planned:
        subject = [*from_target(target, "told"), "", f"subject = told({getattr(case.plan, planned)!r})"]
    elif PAIR in target:
        first, second = (from_target(t, n) for t, n in zip(target.split(PAIR), ("first", "second"), strict=True))
        subject = [*first, *second, "subject = first, second"]
    elif target:
        subject = from_target(target, "subject")
    own: list[str] = []
    if isinstance(case.program, ModuleProgram):
        own = [*from_target(case.program.target, "factory"), *from_target(case.program.inputs, "sample_inputs")]
    named = [*own, *subject]
    load = [LOAD] if any("= load(" in line for line in named) else []
    text = "\n".join([text, *load, *named])
    lines = [f"import {name}" for name in _STANDARD if re.search(rf"(?<![\w.]){name.partition('.')[0]}\.", text)]
    torch = ["import torch"]
    torch += ["import torch.nn.functional as F"] if re.search(r"\bF\.", text) else []
    torch += ["from torch import nn"] if re.search(r"\bnn\.", text) else []
    return "\n".join([*lines, "", *torch, "", *load, *named]).lstrip("\n")


#: What programs use of the standard library.
_STANDARD = ("collections", "copy", "dataclasses", "importlib.util", "math", "os", "sys")
#: Runs a file whose name cannot be imported.
LOAD = """
def load(path):
    if path not in sys.modules:
        spec = importlib.util.spec_from_file_location(path, path)
        sys.modules[path] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[path])
    return sys.modules[path]

"""


def from_target(target: str, name: str) -> list[str]:
    """Return the lines that import a target under a name."""
    place, _, attribute = target.rpartition(":")
    before: list[str] = []
    module, parts = f"importlib.import_module({place!r})", place.split(".")
    if place.endswith(".py"):
        path = Path(place).resolve()
        before = [f"sys.path.insert(0, {str(path.parent)!r})"]
        place = path.stem
        module, parts = f"load({str(path)!r})", [place]
    if not all(part.isascii() and part.isidentifier() and not iskeyword(part) for part in parts):
        return [*before, f"{name} = {module}.{attribute}"]
    first, _, rest = attribute.partition(".")
    if rest:
        return [*before, f"import {place}", f"{name} = {place}.{attribute}"]
    return [*before, f"from {place} import {first} as {name}" if first != name else f"from {place} import {first}"]


def _observation(case: Case, m: Mismatch) -> list[str]:
    """Return the lines that end ``run``: it returns the thing that differs."""
    if m.role == "call":
        return []
    leaf = _as_variables(case, m.leaf)
    match m.role, m.kind:
        case (("hook" | "forward-hook"), _):
            return [f"return fired[{m.leaf!r}]"]
        case (("rng" | "mode"), _):
            return [f"return {leaf.partition(' after ')[0]}"]
        case "module", _:
            return [f"return {m.leaf}"]
        case _, "requires-grad":
            return [f"return {leaf}.requires_grad"]
        case _, "version":
            return [f"return {leaf}._version"]
        case _, "structure":
            return [f"return structure({leaf})"]
        case _, "alias":
            return [f"return shared({leaf}, {{{_inputs(case)}}})"]
        case (("output" | "input" | "buffer"), _):
            return [f"return {leaf}.detach().clone()"]
        case _:
            return [f"return {leaf}"]


def _inputs(case: Case) -> str:
    """Return the inputs of all forwards by name, as the inside of a dict."""
    suffixes = ["", *(f"_{number}" for number in range(1, case.environment.forwards))]
    named = [p.name + suffix for suffix in suffixes for p in case.primals if p.tensor and not p.alias]
    return ", ".join(f"{name!r}: {name}" for name in named)


def _as_variables(case: Case, leaf: str) -> str:
    """Return a leaf path with the names that the program gives the things that stage by stage records speak of.

    Example:
        >>> from gradcheck_plus.repro import _STAGE
        >>> bool(_STAGE.match("stage1_1.gradients['h0']"))
        True
    """
    found = _STAGE.match(leaf)
    if not found:
        return leaf
    stage, number, what, name, rest = int(found[1]), int(found[2] or 0), found[3], found[4], found[5]
    if what == "inputs":
        return f"{boundary(stage, name, number)}{rest}"
    grads = f"grads{stage}_{number}" if number else f"grads{stage}"
    if not name:
        return grads
    passed = list(dict.fromkeys(names(*case.program.segments[stage].inputs)))
    return f"{grads}[{passed.index(name)}]"


_STAGE = re.compile(r"stage(\d+)(?:_(\d+))?\.(gradients|inputs)(?:\['(\w+)'\])?(.*)")


def _verdict(m: Mismatch, plain: str) -> list[str]:
    """Return the lines that compare."""
    match m.kind:
        case "raises" if m.error == "SystemExit":
            return [
                f"run({plain})",
                "try:",
                f"    run(subject)  # {m.got}",
                "except SystemExit as error:  # whose own exit code may be that of a program that passes",
                '    raise AssertionError("the subject leaves") from error',
            ]
        case "raises":
            return [f"run({plain})", f"run(subject)  # {m.got}"]
        case "hang" | "crash":
            return [
                f"run({plain})",
                "# The fault is that this call does not come back, whatever exit code it leaves with.",
                f"run(subject)  # {m.got}",
            ]
        case "not-raised":
            return [
                f"for implementation in ({plain}, subject):",
                "    try:",
                "        run(implementation)",
                "    except RuntimeError:",
                "        continue",
                '    raise AssertionError(f"expected an exception of {implementation}")',
            ]
        case "presence":
            test = "(expected is None) == (got is None)"
        case "dtype" | "shape" | "device":
            test = f"expected.{m.kind} == got.{m.kind}"
        case "state" if m.role in ("module", "mode"):  # which no tensor holds
            test = "expected == got"
        case "value" | "not-repeatable" | "state":
            atol = m.figures.allowed if m.figures and m.figures.rule != "bitwise" else 0
            return [
                f"expected, got = run({plain}), run(subject)",
                f"torch.testing.assert_close(got, expected, rtol=0, atol={atol!r}, equal_nan=True)",
            ]
        case _:
            test = "expected == got"
    return [f"expected, got = run({plain}), run(subject)", f'assert {test}, f"expected {{expected}}, got {{got}}"']


# what programs use ------------------------------------------------------------------------------------------------------


def vocabulary(program: str, device: str) -> str:
    """Return the definitions that a program uses, of those in `gradcheck_plus.support`, without docstrings."""
    known = _definitions()
    used: set[str] = set()

    def add(text: str) -> None:
        for name, definition in known.items():
            if name not in used and re.search(rf"(?<![\w.'\"]){name}\b", text):
                used.add(name)
                add(definition)

    add(program)
    text = "\n\n\n".join(known[name] for name in known if name in used)
    constants = f"DEVICE, DTYPE = {device!r}, torch.float32\n\n\n" if "DTYPE" in text or "DEVICE" in text else ""
    return constants + text


@cache
def _definitions() -> dict[str, str]:
    """Return the functions, classes and containers of `gradcheck_plus.support`, by name, without docstrings."""
    tree = ast.parse((resources.files("gradcheck_plus") / "support.py").read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef | ast.ClassDef) and ast.get_docstring(inner) is not None:
                    inner.body = inner.body[1:]
            found[node.name] = ast.unparse(node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id.startswith("Named"):
            found[node.targets[0].id] = ast.unparse(node)
    return found
