"""The repro of a fault in a function: one standalone program that needs torch, the function and its reference."""

import ast
import inspect
import re
import textwrap
from functools import cache
from pathlib import Path

import torch

from gradcheck_plus.case import Case
from gradcheck_plus.functions import support
from gradcheck_plus.functions.checks import CHECKS, Scene, double_backward, values
from gradcheck_plus.functions.judging import Tested
from gradcheck_plus.functions.numeric import compared, jacobian
from gradcheck_plus.functions.point import Point
from gradcheck_plus.functions.support import gradients
from gradcheck_plus.functions.tested import function_class
from gradcheck_plus.mismatch import Mismatch
from gradcheck_plus.repro import LOAD
from gradcheck_plus.repro.replayed import docstring, replayed, subject_lines


def call_repro(case: Case, mismatch: Mismatch, tested: Tested, *, target: str, reference: str) -> str:
    """Return a standalone program that fails while the fault is there.

    Args:
        case: the shrunk case.
        mismatch: how it fails.
        tested: the function.
        target: how to import it; empty for a live object.
        reference: how to import its reference; empty for a live object, or where there is none.
    """
    assert case.call is not None
    scene = tested.scene(case.call)
    proof = None if scene.point.sample.others else _proof(scene, mismatch)
    if proof is None:
        return replayed(case, mismatch.message, target)
    point = scene.point
    body = "\n\n\n".join([_leaves(point), point.source.strip(), *proof])
    used = _vocabulary(body)
    subject = _imported(target, "subject", tested.given)
    if "reference" in proof[-1]:
        subject += "\n" + _imported(reference, "reference", tested.reference_given)
    if tested.draws:
        used += "\n\n\n" + _SEEDED
        body = body.replace("subject", "seeded(subject)").replace("reference,", "seeded(reference),")
    text = "\n".join([subject, used, body])
    standard = [
        f"import {name}"
        for name in ("gc", "importlib.util", "itertools", "sys", "weakref")
        if re.search(rf"\b{name.partition('.')[0]}\.", text)
    ]
    head = docstring(mismatch.message)
    load = LOAD if "= load(" in subject else ""
    parts = [head, "\n".join(standard), "import torch", load.strip("\n"), subject, used, body]
    return "\n\n".join(p for p in parts[:5] if p) + "\n\n\n" + "\n\n\n".join(p for p in parts[5:] if p) + "\n"


def _imported(target: str, name: str, given: object) -> str:
    lines = subject_lines(target, name)
    if target and isinstance(given, type) and function_class(given):
        lines = [*lines, f"{name} = {name}.apply"]
    return "\n".join(lines)


_SEEDED = """def seeded(function):
    def same(*args, **kwargs):
        torch.manual_seed(0)
        return function(*args, **kwargs)

    return same"""


# the proof --------------------------------------------------------------------------------------------------------------


def _proof(scene: Scene, mismatch: Mismatch) -> list[str] | None:
    """Return the part of the program that fails; None where it would be the tool itself."""
    check = CHECKS[scene.call.check]
    if check.core is not None:
        code = _without_docstring(textwrap.dedent(inspect.getsource(check.core)))
        names = [f"`{name}`" for name in scene.names]
        called = f"found = list({check.core.__name__}(subject, call, leaves, {names!r}))"
        return [code, f"{called}\nassert not found, found[0][2]"]
    if check.run is values.check:
        return _by_reference(scene, mismatch) if scene.reference is not None else _by_slope(scene, "run(op, *leaves).sum()")
    if check.name == "double-backward":
        code = _without_docstring(inspect.getsource(double_backward.first_order))
        found = _by_slope(scene, "first_order(op, call, leaves).sum()")
        return found and [code, *found]
    if check.name == "jacobian":
        wrong, _, _ = jacobian(scene.point, scene.op)
        if not wrong:
            return None
        slot, index, row, *_ = wrong[0]
        each = "(torch.view_as_real(y) if y.is_complex() else y).reshape(-1)"
        loss = f"torch.cat([{each} for y in floats(call(op, *leaves))])[{row}]"
        return [_slope_text(scene.point, slot, index, loss)]
    return None


def _by_reference(scene: Scene, mismatch: Mismatch) -> list[str]:
    assert scene.reference is not None
    if mismatch.kind == "raises":
        lines = [f"gradients(run, {op}, leaves, {scene.point.times})" for op in ("reference", "subject")]
        return ["\n".join([*lines[:1], f"{lines[1]}  # {mismatch.got}"])]
    if "output" in mismatch.leaf:
        lines = [
            "for got, expected in zip(floats(call(subject, *leaves())), floats(call(reference, *leaves())), strict=True):",
            "    keep = expected.isfinite() if expected.shape == got.shape else ...",
            f"    options = {{'rtol': 0, 'atol': {_output_limit(scene)!r}, 'check_dtype': False}}",
            "    torch.testing.assert_close(got[keep], expected[keep], **options)",
        ]
        return ["\n".join(lines)]
    expected = gradients(scene.point.run, scene.reference, scene.point.leaves, scene.point.times)
    slot = scene.names.index(mismatch.leaf)
    limit = values.allowed(scene, scene.reference, expected)[slot]
    times = scene.point.times
    lines = [
        f"got = gradients(run, subject, leaves, {times})[{slot}]",
        f"expected = gradients(run, reference, leaves, {times})[{slot}]",
        "if got is None or expected is None:",
        '    assert near(expected, got), f"got {got}, expected {expected}"',
        "else:",
        "    keep = expected.isfinite()",
        f"    torch.testing.assert_close(got[keep], expected[keep], rtol=0, atol={limit!r}, check_dtype=False)",
    ]
    return ["\n".join(lines)]


def _output_limit(scene: Scene) -> float:
    assert scene.reference is not None
    return max(values.output_limits(scene, scene.reference), default=0.0)


def _by_slope(scene: Scene, loss: str) -> list[str] | None:
    point: Point = scene.point
    if "first_order" in loss:
        point = double_backward.second(point)
    try:
        wrong, _ = compared(point, scene.op, gradients(point.run, scene.op, point.leaves, point.times))
    except Exception:
        return ["run(subject, *leaves()).sum().backward()"] if "run(" in loss else None
    return [_slope_text(point, wrong[0].slot, list(wrong[0].index), loss)] if wrong else None


def _slope_text(point: Point, slot: int, index: list[int], loss: str) -> str:
    value = point.slots[slot].value
    part = ""
    step = "h"
    if value.is_complex():
        *index, which = index
        part, step = (".real", "h") if which == 0 else (".imag", "h * 1j")
    at = f"[{', '.join(map(str, index))}]" if index else "[()]"
    size = abs(value[tuple(index)].item()) or 1.0
    return "\n".join(
        [
            f"def loss(op, *leaves):\n    return {loss}\n\n",
            "made = leaves()",
            "loss(subject, *made).backward()",
            f"got = gradient(made[{slot}])",
            f"got = 0.0 if got is None else got{at}{part}.item()",
            "",
            f"h = {1e-6 * size!r}",
            "up, down = ([t.detach().clone() for t in leaves()] for _ in range(2))",
            f"up[{slot}]{at} += {step}",
            f"down[{slot}]{at} -= {step}",
            "expected = ((loss(subject, *up) - loss(subject, *down)) / (2 * h)).item()",
            'assert abs(got - expected) <= 1e-4 * max(abs(expected), 1e-2), f"got {got}, expected {expected}"',
        ]
    )


# the parts --------------------------------------------------------------------------------------------------------------


def _leaves(point: Point) -> str:
    lines = ["def leaves():"]
    for slot in point.slots:
        lines.append(f"    {slot.argument.variable} = leaf({_literal(slot.value)}, {slot.layout or None}, {slot.grad})")
        if slot.main_grad:
            lines.append(f"    {slot.argument.variable}.main_grad = torch.zeros_like({slot.argument.variable})")
        if slot.main_grad == 2:
            lines.append(f"    {slot.argument.variable}.grad_added_to_main_grad = False")
    return "\n".join([*lines, f"    return [{', '.join(point.variables)}]"])


def _literal(value: torch.Tensor) -> str:
    if not value.numel():
        return f"torch.empty({tuple(value.shape)}, dtype={value.dtype})"
    wide = (
        value.to(torch.complex128 if value.is_complex() else torch.float64)
        if value.is_floating_point() or value.is_complex()
        else value
    )
    text = re.sub(r"\b(nan|inf)\b", r'float("\1")', repr(wide.tolist()))
    return f"torch.tensor({text}, dtype={value.dtype})"


def _without_docstring(source: str) -> str:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node) is not None:
            node.body = node.body[1:]
    return ast.unparse(tree)


def _vocabulary(text: str) -> str:
    """Return what a program uses of `gradcheck_plus.functions.support`."""
    known, used = _definitions(), set[str]()

    def add(code: str) -> None:
        for name, definition in known.items():
            if name not in used and re.search(rf"(?<![\w.'\"]){name}\b", code):
                used.add(name)
                add(definition)

    add(text)
    return "\n\n\n".join(known[name] for name in known if name in used)


@cache
def _definitions() -> dict[str, str]:
    tree = ast.parse(Path(support.__file__).read_text(encoding="utf-8"))
    return {n.name: _without_docstring(ast.unparse(n)) for n in tree.body if isinstance(n, ast.FunctionDef)}
