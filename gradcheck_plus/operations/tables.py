"""Families as tables: operations that differ in their line only share everything else.

A table maps the name of each operation to its line, or to what makes its module; the keywords are the fields of
`Operation` that all of them have.
"""

from collections.abc import Mapping
from typing import Any

from gradcheck_plus.operations.entry import Operation


def functions(family: str, lines: Mapping[str, str], **common: Any) -> tuple[Operation, ...]:
    """Return an operation for each name and line.

    Example:
        >>> [o.line for o in functions("pointwise", {"asinh": "torch.asinh({a})"}, empty=True)]
        ['torch.asinh({a})']
    """
    return tuple(Operation(name, family, line, **common) for name, line in lines.items())


def layers(family: str, setups: Mapping[str, str], *, line: str = "{module}({a})", **common: Any) -> tuple[Operation, ...]:
    """Return an operation for each name and constructor of a module, all called in the same way.

    Example:
        >>> [(o.line, o.setup) for o in layers("layers", {"elu_module": "nn.ELU()"})]
        [('{module}({a})', 'nn.ELU()')]
    """
    return tuple(Operation(name, family, line, setup=setup, **common) for name, setup in setups.items())
