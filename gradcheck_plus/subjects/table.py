"""The feature table of all built-in subjects, made from their contracts: ``python -m gradcheck_plus.subjects.table``."""

import sys
from collections.abc import Iterator

from gradcheck_plus.expectations import ANY, Expectation, contract
from gradcheck_plus.subject import Planned
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.subjects.builtin import BuiltIn
from gradcheck_plus.traits import TRAITS

_HEAD = """# Built-in subjects

What each built-in subject does with each trait. This page is made from the contracts in `gradcheck_plus/contracts/`, by
`python -m gradcheck_plus.subjects.table > docs/subjects.md`; a test fails if it is not current.

"""
_LEGEND = """
| mark | meaning |
|---|---|
| ✓ | supported: whatever differs from plain autograd is a fault |
| limit | something that the subject documents is excused, and nothing else of such a case; the tables below say what |
| (limit) | all that it does with such a case is excused |
| refuses | it may raise, or else is right |
| known | a known fault is excused, unless `--no-known` is given |
| | the trait means nothing to this kind of subject |
"""
_INSTALLING = """
## Installing third parties

They are extras: `pip install gradcheck-plus[fairscale]`, and so on. Some of them name a CUDA build of torch, or build CUDA
extensions, when they are installed. Beside a CPU build of torch, install them alone, and what they need:

```console
$ pip install --no-deps torchgpipe fairscale
$ pip install psutil einops hjson msgpack ninja py-cpuinfo pydantic tqdm
$ DS_BUILD_OPS=0 pip install --no-deps --no-build-isolation deepspeed
```
"""

#: The traits of plans, and the field of the plan that they are about.
_TOLD: dict[str, Planned] = {
    "saved-result": "saved",
    "saved-in-place": "saved",
    "saved-random": "saved",
    "saved-cast": "saved",
    "nested-layers": "layers",
    "several-pieces": "pieces",
}
#: What a case with a trait has as well, where that is observed.
_IMPLIED = {"no-grad-input": ("region-without-grad-input",)}


def page() -> str:
    """Return the page."""
    subjects = list(SUBJECTS.values())
    return "".join([_HEAD, *_listed(subjects), _LEGEND, *_matrices(subjects), *map(_exceptions, subjects), _INSTALLING])


def expectations(subject: BuiltIn) -> list[Expectation]:
    """Return what a subject is excused on some torch version, known faults included."""
    every = (*contract(subject.contract).expectations, *contract("torch-known").expectations)
    return [e for e in every if e.subject in (ANY, subject.name, subject.on or subject.name)]


def status(subject: BuiltIn, trait: str) -> str:
    """Return the mark of a subject and a trait."""
    if subject.kind not in TRAITS[trait].kinds or _TOLD.get(trait, subject.planned) != subject.planned:
        return ""
    found = [e for e in expectations(subject) if e.trait in (trait, *TRAITS[trait].needs, *_IMPLIED.get(trait, ()))]
    effects = {e.effect for e in found}
    if any(e.wholesale and e.effect == "limit" for e in found):
        return "(limit)"
    return next((effect for effect in ("refuses", "limit", "known") if effect in effects), "✓")


def _listed(subjects: list[BuiltIn]) -> Iterator[str]:
    yield "| subject | kind | contract | what it is | package |\n|---|---|---|---|---|\n"
    for s in subjects:
        yield f"| `{s.name}` | {s.kind} | `{s.contract}` | {s.doc} | {s.needs or 'torch'} |\n"


def _matrices(subjects: list[BuiltIn]) -> Iterator[str]:
    for kind in dict.fromkeys(s.kind for s in subjects):
        columns = [s for s in subjects if s.kind == kind]
        yield f"\n## Traits of {kind} subjects\n\n| trait | {' | '.join(f'`{s.name}`' for s in columns)} |\n"
        yield "|---" * (len(columns) + 1) + "|\n"
        for trait in TRAITS.values():
            if kind in trait.kinds:
                yield f"| {trait.name} | {' | '.join(status(s, trait.name) for s in columns)} |\n"


def _exceptions(subject: BuiltIn) -> str:
    found = expectations(subject)
    lines = [f"\n## What `{subject.name}` is excused\n\n"]
    lines += ["| trait | effect | what | whose | torch | source |\n|---|---|---|---|---|---|\n"] if found else ["Nothing.\n"]
    for e in found:
        kind = "raises" if e.effect == "refuses" else _all(e.kind)
        trait = "every case" if e.trait == ANY else e.trait
        says = f" ({e.note.rstrip('.')})" if e.note else ""
        lines.append(f"| {trait} | {e.effect} | {kind}{says} | {_all(e.role)} | {e.torch or 'all'} | {e.source} |\n")
    return "".join(lines)


def _all(names: tuple[str, ...]) -> str:
    return "everything" if ANY in names else ", ".join(names)


if __name__ == "__main__":
    sys.stdout.write(page())
