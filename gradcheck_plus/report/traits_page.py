"""`docs/traits.md`, written from the trait table, the contracts and the zoo.

``python -m gradcheck_plus.report.traits_page`` prints it; a test compares the two.
"""

import re
import sys
from collections.abc import Iterator
from itertools import combinations

from gradcheck_plus.expectations import ANY, built_in, contract
from gradcheck_plus.subject import KINDS
from gradcheck_plus.traits import TRAITS, Trait, drawable
from gradcheck_plus.traits.impossible import impossible
from gradcheck_plus.zoo import ZOO

_HEAD = """# Traits

A trait is a named property of a case that some implementation somewhere gets wrong. This page is written by
`python -m gradcheck_plus.report.traits_page > docs/traits.md`.

*Drawn* is a trait that cases can be aimed at (`--trait`, `--no-trait`), for the kinds of subject that it says; the others are
only observed. *Excused by* names the contracts that have an entry for it, and *planted* the faults of the zoo that need it.

| trait | meaning | drawn for | reported in | excused by | planted |
|---|---|---|---|---|---|
"""
_PAIRS = """
## Pairs that cannot meet

A campaign reports how many pairs of drawn traits met in a judged case, out of those that can. A case says nothing of a trait
that is the excuse for another output, gradient or exception; where it excuses a side effect alone, as statistics that are
updated once more, the gradients have been judged with it. No case can have these pairs:

| trait | never with | since |
|---|---|---|
"""
_ISSUE = re.compile(r"\b([\w.-]+/[\w.-]+)#(\d+)")


def page() -> str:
    """Return the page."""
    return _HEAD + "".join(map(_row, TRAITS.values())) + _PAIRS + "".join(_pairs())


def _row(trait: Trait) -> str:
    kinds = [kind for kind in KINDS if trait.name in drawable(kind)]
    drawn = "every kind" if len(kinds) == len(KINDS) else ", ".join(kinds) or "observed"
    planted = [entry.name for entry in ZOO.values() if any(trait.name in trigger for trigger in entry.triggers)]
    cells = (
        f"`{trait.name}`",
        trait.meaning,
        drawn,
        _linked(trait.source),
        ", ".join(_excusing(trait.name)),
        ", ".join(planted),
    )
    return f"| {' | '.join(cell or '-' for cell in cells)} |\n"


def _linked(source: str) -> str:
    return _ISSUE.sub(r"[\1#\2](https://github.com/\1/issues/\2)", source)


def _excusing(name: str) -> list[str]:
    """Return the contracts that have an entry of their own for a trait, with its effect."""
    found: dict[str, list[str]] = {}
    for each in built_in():
        for e in contract(each).expectations:
            if e.trait == name != ANY:
                found.setdefault(each, []).append(e.effect)
    return [f"{each} ({', '.join(dict.fromkeys(effects))})" for each, effects in found.items()]


def _pairs() -> Iterator[str]:
    """Yield a row for every trait and reason."""
    rows: dict[tuple[str, str], list[str]] = {}
    for a, b in combinations(TRAITS, 2):
        if reason := impossible(a, b):
            rows.setdefault((a, reason), []).append(f"`{b}`")
    for (name, reason), others in rows.items():
        yield f"| `{name}` | {', '.join(others)} | {reason} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
