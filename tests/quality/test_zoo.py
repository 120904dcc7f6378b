"""The zoo as data: what an entry says of itself is true."""

import pkgutil

import pytest
import torch

from gradcheck_plus import zoo
from gradcheck_plus.execute.targets import load
from gradcheck_plus.expectations import built_in, contract
from gradcheck_plus.subject import KINDS
from gradcheck_plus.traits import TRAITS
from gradcheck_plus.zoo import ZOO, Planted

ENTRIES = [pytest.param(entry, id=name) for name, entry in ZOO.items()]


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_trigger_is_a_trait_that_means_something_to_its_kind(entry: Planted) -> None:
    named = frozenset().union(*entry.triggers)

    assert named <= set(TRAITS)
    assert all(entry.kind in TRAITS[name].kinds for name in named)


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_target_leads_to_the_implementation(entry: Planted) -> None:
    assert load(entry.target) is entry.faulty
    assert load(entry.twin_target) is entry.twin
    assert entry.faulty is not entry.twin


@pytest.mark.parametrize("entry", ENTRIES)
def test_every_entry_says_what_is_wrong_in_a_sentence_and_where_it_was_seen(entry: Planted) -> None:
    assert entry.meaning.endswith(".")
    assert ". " not in entry.meaning
    assert entry.source


@pytest.mark.parametrize("entry", ENTRIES)
def test_no_contract_excuses_a_fault_in_all_cases_that_show_it(entry: Planted) -> None:
    assert entry.contract in built_in()
    pointless = contract(entry.contract).for_subject(entry.name, torch=str(torch.__version__), known=True).pointless
    assert any(not trigger & pointless for trigger in entry.triggers)


def test_every_fault_is_a_subclass_of_its_twin_s_make() -> None:
    assert all(isinstance(e.faulty, type(e.twin)) for e in ZOO.values() if e.kind != "function")


def test_every_file_of_the_zoo_is_imported() -> None:
    files = {module.name for module in pkgutil.iter_modules(zoo.__path__)}

    assert {entry.target.rpartition(":")[0].rpartition(".")[2] for entry in ZOO.values()} <= files
    assert all(hasattr(zoo, file) for file in files)


def test_the_zoo_has_faults_of_every_kind() -> None:
    assert {entry.kind for entry in ZOO.values()} == {*KINDS, "function"}
