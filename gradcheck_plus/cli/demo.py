"""``gradcheck-plus demo``: the main job, on what everybody has."""

import argparse
import sys
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.cli.check import run
from gradcheck_plus.cli.progress import bars
from gradcheck_plus.report.files import write_out
from gradcheck_plus.results import FAULT, MATCH, CheckResult, check_text
from gradcheck_plus.settings import Settings
from gradcheck_plus.subject import Kind
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.zoo import ZOO

_PLANTED = "rng-not-restored"
_WIDTH = 132  # of the table, where standard output is no terminal


@dataclass(frozen=True)
class _Row:
    """One check of the demo, and the verdict that shows that all is well."""

    name: str
    kind: Kind
    target: str
    contract: str
    expected: str
    what: str


def demo(options: argparse.Namespace) -> int:
    """Check the built-in subjects, a planted fault and its twin; return 0 if each has the verdict that it should have."""
    rows, results = _rows(), []
    with bars() as bar:
        for row in rows:
            settings = Settings(max_examples=options.max_examples, seed=options.seed)
            search = Search(kind=row.kind, settings=settings, contract=row.contract, target=row.target)
            done = run(search, bar, row.name)
            if done.interrupted:
                raise KeyboardInterrupt
            results.append(done.result)
    planted = next(result for row, result in zip(rows, results, strict=True) if row.expected == "fault")
    well = all(result.verdict == row.expected for row, result in zip(rows, results, strict=True))
    console = Console(width=None if sys.stdout.isatty() else _WIDTH)
    with console.capture() as table:
        console.print(_table(rows, results))
    said = "All as it should be." if well else "Not as it should be: see the table."
    write_out(f"{table.get()}{check_text(planted)}\n\n{said}\n")
    return MATCH if well else FAULT


def _rows() -> list[_Row]:
    planted = ZOO[_PLANTED]
    return [
        *(
            _Row(s.name, s.kind, s.subject.target, s.contract, "match", s.doc)
            for s in SUBJECTS.values()
            if s.compared or s.name == "identity"
        ),
        _Row(f"planted: {planted.name}", planted.kind, planted.target, planted.contract, "fault", planted.meaning),
        _Row("its twin", planted.kind, planted.twin_target, planted.contract, "match", "the same checkpoint, corrected"),
    ]


def _table(rows: list[_Row], results: list[CheckResult]) -> Table:
    table = Table("subject", "verdict", "cases", "judged", "known", "limits", "what it is", title="gradcheck-plus demo")
    for row, result in zip(rows, results, strict=True):
        well = result.verdict == row.expected
        table.add_row(
            row.name,
            f"[{'green' if well else 'red'}]{result.verdict}[/]",
            str(result.cases.run),
            str(result.cases.judged),
            _excused(sum(e.count for e in result.known), {e.trait for e in result.known}),
            str(sum(e.count for e in result.limits) or ""),
            row.what,
        )
    return table


def _excused(count: int, traits: set[str]) -> str:
    return f"{count} ({', '.join(sorted(traits))})" if count else ""
