"""Expectations excuse one sort of mismatch; contracts are lists of them, and ship as data."""

from pathlib import Path
from typing import Any, get_args

import pytest

from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.expectations import ANY, Contract, Effect, Expectation, built_in, contract
from gradcheck_plus.mismatch import Mismatch, Role
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.traits import TRAITS

WRONG = Mismatch("value", "parameter", "params['w'].grad", "1", "2")
LOST = Mismatch("presence", "primal", "x0.grad", "1", "None")
RAISED = Mismatch("raises", "call", "forward", "no exception", "TypeError: no", error="TypeError")


def entry(**fields: Any) -> Expectation:
    return Expectation(**{"trait": "dropout", "effect": "limit", "source": "a document", **fields})


def of(*entries: Expectation) -> Contract:
    return Contract("mine", "", entries)


# what an entry covers ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fields", "covered"),
    [
        ({}, {WRONG, LOST, RAISED}),
        ({"trait": "view"}, set()),
        ({"trait": "*"}, {WRONG, LOST, RAISED}),
        ({"kind": ("value",)}, {WRONG}),
        ({"kind": ("value", "presence")}, {WRONG, LOST}),
        ({"role": ("primal",)}, {LOST}),
        ({"kind": ("value",), "role": ("primal",)}, set()),
        ({"leaf": r"\['w'\]"}, {WRONG}),
        ({"leaf": "^x"}, {LOST}),
        ({"effect": "known"}, {WRONG, LOST, RAISED}),
        ({"effect": "refuses"}, {RAISED}),
        ({"effect": "refuses", "kind": ("value",)}, {RAISED}),
        ({"effect": "refuses", "trait": "view"}, set()),
    ],
)
def test_an_entry_covers_what_it_says_and_nothing_else(fields: dict[str, Any], covered: set[Mismatch]) -> None:
    """Of a case with dropout. A subject that refuses must raise: if it does not, it must be right."""
    found = {m for m in (WRONG, LOST, RAISED) if entry(**fields).covers(m, {"dropout", "fan-out"})}

    assert found == covered


def test_an_entry_for_every_case_covers_one_without_traits() -> None:
    assert entry(trait="*").covers(WRONG, ())
    assert not entry().covers(WRONG, ())


def test_a_contract_excuses_by_its_first_entry_that_covers() -> None:
    first, second = entry(kind=("presence",)), entry(source="another document")

    assert of(first, second).excuse(LOST, {"dropout"}) is first
    assert of(first, second).excuse(WRONG, {"dropout"}) is second
    assert of(first, second).excuse(WRONG, {"view"}) is None
    assert of().excuse(WRONG, TRAITS) is None


@pytest.mark.parametrize(
    ("fields", "wholesale"),
    [
        ({}, True),
        ({"effect": "refuses"}, False),
        ({"trait": "*", "kind": ("value",)}, False),
        ({"kind": ("value",)}, False),
        ({"role": ("call",)}, False),
    ],
)
def test_cases_of_a_trait_that_is_excused_wholesale_teach_nothing(fields: dict[str, Any], wholesale: bool) -> None:
    assert entry(**fields).wholesale == wholesale
    assert of(entry(**fields)).pointless == ({"dropout"} if wholesale else set())


def test_a_leaf_narrows_an_entry_so_that_it_is_not_wholesale() -> None:
    """Its cases can still be judged at the other leaves."""
    assert not entry(leaf="running_mean").wholesale


# whom and when ----------------------------------------------------------------------------------------------------------


def kept(*entries: Expectation, names: tuple[str, ...] = (), torch: str = "2.9.1", known: bool = True) -> list[Expectation]:
    """Return which of some entries hold."""
    return [e for e in of(*entries).for_subject(*names, torch=torch, known=known).expectations if e in entries]


def test_what_is_known_can_be_switched_off() -> None:
    """And nothing else with it."""
    entries = [entry(effect=effect, source=effect) for effect in get_args(Effect)]

    assert kept(*entries) == entries
    assert [e.effect for e in kept(*entries, known=False)] == ["refuses", "limit"]


def test_an_entry_of_one_subject_is_for_that_subject() -> None:
    """Under any of the names that it goes by."""
    mine, all_ = entry(subject="torch-checkpoint"), entry(source="everybody's")

    assert kept(mine, all_) == [all_]
    assert kept(mine, all_, names=("other",)) == [all_]
    assert kept(mine, all_, names=("my-wrapper", "torch-checkpoint")) == [mine, all_]


@pytest.mark.parametrize(
    ("specifier", "version", "holds"),
    [
        ("", "2.9.1", True),
        (">=2.0", "2.9.1", True),
        (">=2.0,<2.9", "2.9.1", False),
        (">=2.10", "2.9.1", False),
        (">=2.10", "2.13.0+cpu", True),
        ("==2.13.*", "2.13.0+cu130", True),
        (">=2.13", "2.14.0.dev20260101+cu130", True),
        (">=2.13", "2.13.0a0+git1234567", False),
    ],
)
def test_an_entry_holds_on_the_torch_versions_of_its_specifier(specifier: str, version: str, holds: bool) -> None:
    """Nightlies and builds of one's own included, as versions are ordered."""
    assert bool(kept(entry(torch=specifier), torch=version)) == holds


def test_what_is_known_of_torchs_own_subjects_is_part_of_every_contract() -> None:
    """Also of one that excuses nothing by itself; `--no-known` leaves the limits."""
    own = contract("torch-known").expectations
    with_known = contract("strict").for_subject("torch-checkpoint", torch="2.13.0", known=True).expectations
    without = contract("strict").for_subject("torch-checkpoint", torch="2.13.0", known=False).expectations

    assert with_known == tuple(e for e in own if e.subject == "torch-checkpoint")
    assert without == tuple(e for e in with_known if e.effect != "known")
    assert without != with_known
    assert contract("strict").for_subject("mine", torch="2.13.0", known=True).expectations == ()


# files ------------------------------------------------------------------------------------------------------------------


def file(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text, encoding="utf-8")
    return str(path)


HEAD = 'name = "mine"\ndoc = "what I promise"\n'
ENTRY = '[[expectation]]\ntrait = "dropout"\neffect = "limit"\nsource = "a document"\n'


def test_a_contract_can_be_a_file_of_ones_own(tmp_path: Path) -> None:
    """It has what it extends, then its own."""
    found = contract(file(tmp_path, HEAD + 'extends = ["reentrant"]\nequal_bits = false\n' + ENTRY))

    assert (found.name, found.doc, found.equal_bits) == ("mine", "what I promise", False)
    assert found.expectations == (*contract("reentrant").expectations, entry())


def test_without_a_word_equal_bits_are_due(tmp_path: Path) -> None:
    assert contract(file(tmp_path, HEAD)).equal_bits


BROKEN = {
    "no TOML": (HEAD + "[[expectation", "mine.toml"),
    "unknown field": (HEAD + ENTRY + 'traits = "view"\n', "`traits`"),
    "unknown field of the file": (HEAD + 'extend = "strict"\n', "`extend`"),
    "missing field": (HEAD + '[[expectation]]\ntrait = "dropout"\neffect = "limit"\n', "`source`"),
    "unknown trait": (HEAD + ENTRY.replace("dropout", "droput"), "Did you mean 'dropout'"),
    "unknown effect": (HEAD + ENTRY.replace("limit", "excuse"), "'excuse'"),
    "unknown kind": (HEAD + ENTRY + 'kind = ["values"]\n', "'values'"),
    "unknown role": (HEAD + ENTRY + 'role = ["parameters"]\n', "parameters"),
    "no list": (HEAD + ENTRY + 'kind = "value"\n', ".kind`"),
    "no version specifier": (HEAD + ENTRY + 'torch = "2.9 or so"\n', "2.9 or so"),
    "everything": (HEAD + ENTRY.replace('"dropout"', '"*"'), "excuses everything"),
    "no regular expression": (HEAD + ENTRY + 'leaf = "params["\n', "unterminated character set"),
    "unknown contract": (HEAD + 'extends = ["strickt"]\n', "Did you mean 'strict'"),
    "nothing": ("", "`name`"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_refused_with_one_clear_error(tmp_path: Path, name: str) -> None:
    """It names the file or the entry, and what is wrong there."""
    text, said = BROKEN[name]
    with pytest.raises(InvalidArgument) as caught:
        contract(file(tmp_path, text))

    assert said in str(caught.value)
    assert "=" in str(caught.value).split("`")[2]
    assert len(str(caught.value)) < 500


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(InvalidArgument, match=r"mine\.toml"):
        contract(str(path))


def test_a_file_that_extends_itself_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(HEAD + f'extends = ["{path}"]\n', encoding="utf-8")

    with pytest.raises(InvalidArgument, match="extends"):
        contract(str(path))


@pytest.mark.parametrize("name", ["nowhere.toml", "some/where", "/no/such/file.toml"])
def test_a_missing_file_is_said_to_be_missing(name: str) -> None:
    with pytest.raises(InvalidArgument, match=f"`contract`='{name}': there is no such file. Write a name or the path"):
        contract(name)


def test_an_unknown_name_suggests_a_near_one() -> None:
    with pytest.raises(InvalidArgument, match=r"`contract`='chekpoint' is not known\. Did you mean 'checkpoint'"):
        contract("chekpoint")


# what ships -------------------------------------------------------------------------------------------------------------

every_contract = pytest.mark.parametrize("name", built_in())


def test_the_contracts_that_a_subject_needs_ship() -> None:
    assert {"strict", "checkpoint", "reentrant", "stage-backward"} <= set(built_in())
    assert {s.contract for s in SUBJECTS.values()} <= set(built_in())


@every_contract
def test_a_contract_that_ships_says_what_it_is(name: str) -> None:
    found = contract(name)

    assert found.name == name
    assert found.doc.endswith(".")


@every_contract
def test_every_entry_that_ships_has_a_public_source_and_a_trait_of_the_table(name: str) -> None:
    """A limit without a public source is not a limit, it is a fault."""
    for e in contract(name).expectations:
        assert e.source.startswith("https://") or "documentation" in e.source, e
        assert e.trait == ANY or e.trait in TRAITS, e
        assert e.subject == ANY or e.subject in SUBJECTS, e
        assert set(e.role) <= {ANY, *get_args(Role)}, e


@every_contract
def test_no_entry_that_ships_excuses_everything(name: str) -> None:
    """One for every case names what it excuses, and in which releases."""
    wide = [e for e in contract(name).expectations if e.trait == ANY]
    assert [e for e in wide if ANY in e.kind or ANY in e.role or not e.torch] == []
    assert contract(name).pointless < set(TRAITS)


@every_contract
def test_every_entry_that_ships_can_cover_something(name: str) -> None:
    """One that follows a wider one would never be asked."""
    entries = contract(name).expectations
    for n, e in enumerate(entries):
        before = [b for b in entries[:n] if b.trait == e.trait and b.subject == e.subject and b.effect != "refuses"]
        assert not any(covers_more(b, e) for b in before), e


def covers_more(first: Expectation, second: Expectation) -> bool:
    kinds = ANY in first.kind or set(second.kind) <= set(first.kind)
    return kinds and (ANY in first.role or set(second.role) <= set(first.role)) and not first.leaf and not first.torch


def test_strict_excuses_nothing() -> None:
    assert contract("strict").expectations == ()
    assert contract("strict").equal_bits
