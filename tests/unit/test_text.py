"""Reports as text."""

import re
import shlex
from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from gradcheck_plus import subjects
from gradcheck_plus.case import Case
from gradcheck_plus.checks import check_checkpoint
from gradcheck_plus.errors import GradientMismatch, Inconclusive
from gradcheck_plus.results import CheckResult, Costs, Counts, Excused
from gradcheck_plus.results.text import check_text, headline
from gradcheck_plus.settings import Settings
from gradcheck_plus.zoo import ZOO


def check(name: str, **settings: Any) -> CheckResult:
    return check_checkpoint(ZOO[name].faulty, settings=Settings(**{"max_examples": 100, "seed": 1, **settings}))


@pytest.fixture(scope="module")
def faulty() -> CheckResult:
    return check("keywords-detached")


@pytest.fixture(scope="module")
def silent() -> CheckResult:
    return check_checkpoint(subjects.SUBJECTS["torch-checkpoint"].subject.call, settings=Settings(max_examples=200, seed=1))


def test_the_first_line_says_what_came_of_it(faulty: CheckResult, silent: CheckResult) -> None:
    assert headline(faulty).startswith("FAULT: checkpoint ")
    assert headline(silent).startswith("MATCH: checkpoint torch-checkpoint")
    assert check_text(silent).splitlines()[0] == headline(silent)


def test_a_fault_is_told_with_what_it_needs_and_its_program(faulty: CheckResult) -> None:
    """Where no files are written, the program is the proof."""
    fault, text = faulty.faults[0], check_text(faulty)

    assert fault.fingerprint in text
    assert f"only when: {', '.join(fault.trigger or ())}" in text
    assert "kwarg-tensor" in text
    assert "class Segment0(nn.Module):" in text
    assert re.search(rf"after {fault.cases_to_find} cases?$", text, re.MULTILINE)


def test_what_is_excused_is_told_with_its_source(silent: CheckResult) -> None:
    assert "excused as documented limits:" in check_text(silent)
    assert "https://github.com/pytorch/pytorch/issues/" in check_text(silent)


def test_only_the_most_frequent_excuses_are_told_unless_all_are_asked_for(silent: CheckResult) -> None:
    silent.limits = [Excused(f"trait{n}", "value", "buffer", n, "somewhere") for n in range(1, 6)]
    short, long = check_text(silent), check_text(silent, verbose=True)

    assert "trait5" in short
    assert "trait1" not in short
    assert "... and 2 more; -v shows them" in short
    assert "trait1" in long


def test_every_judged_trait_is_told_when_asked_for(silent: CheckResult) -> None:
    assert all(
        f"{trait} {count}" in " ".join(check_text(silent, verbose=True).split()) for trait, count in silent.traits.items()
    )


def test_what_it_costs_is_told_in_words(silent: CheckResult) -> None:
    """A percentage of what is kept, which nobody takes for one of what is spared."""
    silent.costs = Costs(10, 20, 40, 1000, 250)

    said = "costs, in 10 cases: modules run 2.0 times as often as in plain autograd, autograd keeps 25% of its bytes"
    assert said in check_text(silent)


def test_one_case_is_no_plural(faulty: CheckResult) -> None:
    one = replace(faulty, faults=[replace(faulty.faults[0], cases_to_find=1)], cases=Counts(1, 1), costs=Costs(1, 20, 40))
    one.limits = [Excused("dropout", "value", "buffer", 1, "somewhere")]

    assert re.findall(r"\b1 cases?\b", check_text(one)) == ["1 case"] * 4


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["h0 = sin(x0)"], "nothing in particular, the simplest case shows it"),
        (["h0 = layer_norm(x0)"], "no known trait explains it"),
        (["h0 = sin(x0)", "h1 = sin(h0)"], "no known trait explains it"),
    ],
)
def test_a_fault_without_a_trigger_is_that_of_every_case_only_if_the_simplest_one_shows_it(
    lines: list[str], said: str, faulty: CheckResult, write: Callable[..., Case]
) -> None:
    """Where shrinking stopped before that, something is needed that no trait names."""
    fault = replace(faulty.faults[0], trigger=(), case=write(lines).to_json())

    assert f"  only when: {said}\n" in check_text(replace(faulty, faults=[fault]))


@pytest.mark.parametrize("out", ["found", "my 'found' (1)"])
def test_the_commands_that_are_told_can_be_pasted_into_a_shell(out: str, faulty: CheckResult) -> None:
    fault = faulty.faults[0]
    told = replace(faulty, faults=[fault], volatile={**faulty.volatile, "out": out})
    (line,) = [line for line in check_text(told).splitlines() if "repro: " in line]

    words = ["repro:", "python", f"{out}/{fault.repro}", "replay:", "gradcheck-plus", "replay", f"{out}/{fault.replay}"]
    assert shlex.split(line) == words


def test_a_name_is_never_broken_at_its_hyphen(faulty: CheckResult) -> None:
    """It could not be searched for."""
    assert not [line for line in check_text(faulty, verbose=True).splitlines() if line.endswith("-")]


def test_no_line_ends_in_blanks(faulty: CheckResult) -> None:
    assert all(line == line.rstrip() for line in check_text(faulty, verbose=True).splitlines())


def test_a_fault_is_raised_as_a_mismatch_with_the_report(faulty: CheckResult) -> None:
    with pytest.raises(GradientMismatch, match="only when: "):
        faulty.raise_if_faulty()


@pytest.mark.parametrize(("out", "told"), [({}, 1), ({"out": "found"}, 0)])
def test_a_mismatch_says_once_where_the_repro_is_if_no_file_has_it(out: dict[str, str], told: int, faulty: CheckResult) -> None:
    result = replace(faulty, volatile={**faulty.volatile, **out}, faults=faulty.faults * 2)

    with pytest.raises(GradientMismatch) as caught:
        result.raise_if_faulty()
    assert str(caught.value).count("--gradcheck-out=DIR") == str(caught.value).count("`.faults[0].program`") == told


def test_a_check_that_could_not_tell_is_raised_too(silent: CheckResult) -> None:
    silent.raise_if_faulty()
    silent.verdict, silent.reason = "inconclusive", "too little was judged"
    with pytest.raises(Inconclusive, match="too little was judged"):
        silent.raise_if_faulty()
