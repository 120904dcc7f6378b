"""Cases of a function: drawn as data, the same everywhere, plain when they shrink."""

import torch
from hypothesis import find, given, settings

import gradcheck_plus as gp
from gradcheck_plus import strategies as gst
from gradcheck_plus.campaign.campaign import Campaign
from gradcheck_plus.campaign.function_runner import FunctionRunner
from gradcheck_plus.campaign.plan import Search
from gradcheck_plus.case import Case
from gradcheck_plus.functions.checks import CHECKS
from gradcheck_plus.functions.variations import THEMES, VARIANTS
from gradcheck_plus.settings import Settings
from gradcheck_plus.traits import TRAITS, traits
from gradcheck_plus.traits.calls import PHRASES

QUIET = settings(max_examples=60, database=None, deadline=None)


@QUIET
@given(case=gst.calls(checks=list(CHECKS), variations=list(VARIANTS)))
def test_a_case_survives_json_and_has_its_variations_for_traits(case: Case) -> None:
    assert case.call is not None
    assert Case.from_json(case.to_json()) == case
    assert traits(case) == case.call.names
    forced = CHECKS[case.call.check].forces
    assert not forced or forced in case.call.names


def test_it_shrinks_to_the_sample_call_itself() -> None:
    case = find(gst.calls(variations=list(VARIANTS)), lambda _: True, settings=settings(database=None))

    assert case.call is not None
    assert (case.call.check, case.call.variations) == ("values", ())


def test_every_variation_has_a_phrase_a_trait_and_a_theme() -> None:
    assert set(PHRASES) == set(VARIANTS) == {n for names in THEMES.values() for n in names}
    assert all(TRAITS[name].kinds == ("function",) for name in VARIANTS)


def test_a_campaign_is_the_same_for_the_same_seed_in_any_order_of_blocks() -> None:
    target = "gradcheck_plus.zoo.function_faults"
    search = Search(
        kind="function",
        settings=Settings(max_examples=110, seed=4, checks=("values", "masks"), keep_going=True),
        target=f"{target}:RowMaximum",
        reference=f"{target}:row_maximum",
        inputs=f"{target}:matrix",
    )
    one, two = (Campaign(search, FunctionRunner(search), order=order).run() for order in ((0, 1), (1, 0)))

    one.volatile = two.volatile = {}
    assert one == two
    assert one.verdict == "fault"


def test_a_function_that_is_only_refused_is_inconclusive() -> None:
    result = gp.check_function(
        lambda x: x.sin(), inputs=lambda: [torch.ones(2)], settings=gp.Settings(checks=("devices",), max_examples=3)
    )

    assert result.verdict == "inconclusive"
    assert "no case was judged" in result.reason
