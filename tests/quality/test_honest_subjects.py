"""The detector is silent: it raises no alarm on what is right, and finds what is known to be wrong with torch."""

from collections.abc import Callable
from pathlib import Path

import pytest

from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.campaign.runner import LocalRunner
from gradcheck_plus.results import CheckResult
from gradcheck_plus.settings import Settings
from gradcheck_plus.subject import Kind
from gradcheck_plus.subjects import SUBJECTS
from gradcheck_plus.zoo import ZOO

TWINS = sorted({(entry.kind, entry.twin_target, entry.contract) for entry in ZOO.values() if entry.kind != "function"})


@pytest.mark.parametrize(("kind", "target", "contract"), TWINS)
def test_every_twin_passes(kind: Kind, target: str, contract: str, campaign: Callable[..., CheckResult]) -> None:
    result = campaign(kind, target, contract, max_examples=300 if kind == "wrapper" else 500, keep_going=True)

    assert [fault.message for fault in result.faults] == []
    assert result.verdict == "match"
    assert_all_is_judged(result)


@pytest.mark.parametrize(("kind", "target", "contract"), TWINS)
def test_five_hundred_cases_judge_every_trait_and_nearly_every_pair(
    kind: Kind, target: str, contract: str, campaign: Callable[..., CheckResult]
) -> None:
    """Of those that cases aim at, and that can meet."""
    result = campaign(kind, target, contract, max_examples=500, keep_going=True)

    aimed = LocalRunner(Search(kind=kind, settings=Settings(), contract=contract, target=target)).aimed
    assert [trait for trait in aimed if not result.traits.get(trait)] == []
    assert result.pairs.judged >= 0.95 * result.pairs.possible


@pytest.mark.parametrize("name", list(SUBJECTS))
def test_every_built_in_subject_keeps_its_contract(name: str, campaign: Callable[..., CheckResult]) -> None:
    entry = SUBJECTS[name]
    if entry.missing:
        pytest.skip(entry.missing)
    cases = 300 if entry.compared else 100

    result = campaign(entry.kind, entry.subject.target, entry.contract, max_examples=cases, keep_going=True)

    assert [fault.message for fault in result.faults] == []
    assert result.verdict == "match"
    assert_all_is_judged(result)


def test_the_known_fault_of_torch_is_found_when_nothing_known_is_excused(campaign: Callable[..., CheckResult]) -> None:
    target = SUBJECTS["torch-checkpoint"].subject.target

    result = campaign("checkpoint", target, max_examples=200, known=False)

    assert result.verdict == "fault"
    assert any("random-activation" in (fault.trigger or ()) for fault in result.faults)
    assert {fault.role for fault in result.faults} <= {"primal", "parameter"}


def test_what_torch_is_known_for_is_no_fault_of_what_is_made_like_torch(campaign: Callable[..., CheckResult]) -> None:
    """Copies of saved tensors keep the noise of `rrelu` before it is filled, as torch's own `save_on_cpu` does."""
    target = f"{Path(__file__).with_name('subjects_like_torch.py')}:copied"
    excused, whole = (campaign("checkpoint", target, max_examples=100, keep_going=True, known=known) for known in (True, False))

    assert excused.verdict == "match"
    assert {(entry.trait, entry.source) for entry in excused.known} == {
        ("random-activation", "https://github.com/pytorch/pytorch/issues/193671")
    }
    assert whole.faults
    assert all("random-activation" in (fault.trigger or ()) for fault in whole.faults)


def test_a_subject_that_does_not_refuse_what_it_may_must_be_right(campaign: Callable[..., CheckResult]) -> None:
    """Keyword arguments, of which torch's reentrant checkpoint takes none."""
    entry = ZOO["keywords-detached"]

    assert campaign(entry.kind, entry.target, "reentrant", max_examples=300).verdict == "fault"


def assert_all_is_judged(result: CheckResult) -> None:
    """Nearly every case says something: plain autograd never raises unannounced, and hardly any case has no gradient."""
    assert result.cases.invalid == 0
    assert result.cases.vacuous < 0.03 * max(result.cases.run, 200)  # of so few; of many it is about 1 %
