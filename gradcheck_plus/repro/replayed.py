"""The repro of a fault in a function that asks this tool: where the proof needs more of it than a program can show.

Needs no torch: the process that reports writes it too, for a case that its worker did not survive.
"""

import textwrap
from collections.abc import Sequence

from gradcheck_plus.case import Case
from gradcheck_plus.repro import LOAD, from_target

_WIDTH = 100


def docstring(message: str) -> str:
    """Return what a repro begins with."""
    text = message.replace("\\", "/").replace('"""', "'''")
    return '"""' + "\n".join(textwrap.wrap(text, _WIDTH)) + '\n"""'


def subject_lines(target: str, name: str = "subject") -> Sequence[str]:
    """Return the lines that import what a repro is about."""
    if not target or target.startswith("live:"):
        return [f"{name} = ...  # put the {'function under test' if name == 'subject' else name} here"]
    return from_target(target, name)


def replayed(case: Case, message: str, target: str) -> str:
    """Return a program that judges a case by this tool."""
    imports = "\n".join(subject_lines(target))
    last = f"case = gp.Case.from_json({case.to_json()!r})\ngp.assert_right_function(case, subject)"
    load = LOAD.strip("\n") if "= load(" in imports else ""
    standard = [f"import {name}" for name in ("importlib.util", "sys") if f"{name.partition('.')[0]}." in load + imports]
    parts = [docstring(message), "\n".join(standard), "import gradcheck_plus as gp", load, imports, last]
    return "\n\n".join(part for part in parts if part) + "\n"
