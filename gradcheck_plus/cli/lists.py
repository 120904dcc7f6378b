"""``gradcheck-plus list``."""

import argparse
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.table import Table

from gradcheck_plus.expectations import built_in, contract
from gradcheck_plus.operations import CATALOGUE
from gradcheck_plus.report.files import write_out
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.traits import TRAITS

Row = tuple[str, ...]


def _operations() -> Iterator[Row]:
    yield ("name", "family", "line", "traits")
    for o in CATALOGUE.values():
        yield (o.name, o.family, o.line, ", ".join(o.traits))


def _traits() -> Iterator[Row]:
    yield ("name", "meaning", "for", "drawn", "who gets it wrong")
    for t in TRAITS.values():
        yield (t.name, t.meaning, ", ".join(t.kinds), "yes" if t.drawn else "observed", t.source)


def _checks() -> Iterator[Row]:
    from gradcheck_plus.functions.checks import CHECKS

    yield ("name", "made", "meaning", "who fails it")
    for c in CHECKS.values():
        yield (c.name, "if asked for" if c.asked else "always", c.meaning, c.source)


def _subjects() -> Iterator[Row]:
    yield ("name", "kind", "contract", "target", "what it is", "here")
    for s in SUBJECTS.values():
        yield (s.name, s.kind, s.contract, s.subject.target, s.doc, s.missing or "yes")


def _contracts() -> Iterator[Row]:
    yield ("name", "entries", "what it is")
    for name in built_in():
        c = contract(name)
        yield (c.name, str(len(c.expectations)), c.doc)


def _faults() -> Iterator[Row]:
    from gradcheck_plus.zoo import ZOO

    yield ("name", "kind", "trigger", "meaning", "source")
    for f in ZOO.values():
        yield (f.name, f.kind, f.trigger, f.meaning, f.source)


LISTS: dict[str, Callable[[], Iterator[Row]]] = {
    "operations": _operations,
    "traits": _traits,
    "checks": _checks,
    "subjects": _subjects,
    "contracts": _contracts,
    "faults": _faults,
}


def show(options: argparse.Namespace) -> int:
    """Print a list as a table, or as lines with tabs where standard output is no terminal."""
    rows = LISTS[options.what]()
    console = Console()
    if not console.is_terminal:
        write_out("".join("\t".join(row) + "\n" for row in rows))
        return 0
    table = Table(*next(rows), title=options.what, title_justify="left")
    for row in rows:
        table.add_row(*row)
    console.print(table, markup=False)
    return 0
