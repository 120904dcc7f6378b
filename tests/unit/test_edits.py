"""Edits and candidates: for a trait, the same case without it; and cases that are one step smaller or simpler."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest

from gradcheck_plus.campaign import dataflow, specs
from gradcheck_plus.campaign.edits import EDITS, Edit
from gradcheck_plus.campaign.edits.common import as_dicts, flattened, later, pruned, reaching, substituted
from gradcheck_plus.case import Case, Constant, Container, Cotangent, Name, Parameter, Primal, Spec, Tree
from gradcheck_plus.case.trees import walk
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.execute.build import case_source
from gradcheck_plus.record import Record
from gradcheck_plus.subject import KINDS, Kind
from gradcheck_plus.traits import TRAITS, Facts, drawable, traits

Write = Callable[..., Case]
Drawn = Mapping[Kind, Sequence[Case]]

#: What a printed program that is wrong in itself raises; torch's own refusals are RuntimeErrors.
OURS = {"SyntaxError", "NameError", "UnboundLocalError", "KeyError", "AttributeError", "IndexError", "TypeError"}
#: Traits of specs, and of how many segments there are: smaller and simpler cases take them away.
ELSEWHERE = {
    "empty-value", "scalar-value", "bfloat16-input", "many-segments", "tied-across-segments", "several-results",
    "integer-value", "several-gradients",
}  # fmt: skip


def by_trait() -> dict[str, list[Edit]]:
    found: dict[str, list[Edit]] = {}
    for trait, edit in EDITS:
        found.setdefault(trait, []).append(edit)
    return found


def test_every_trait_that_can_be_aimed_at_has_an_edit() -> None:
    assert set(by_trait()) <= set(TRAITS)
    aimed = {trait for kind in KINDS for trait in drawable(kind)}
    assert aimed - set(by_trait()) <= ELSEWHERE


@pytest.mark.parametrize("trait", by_trait())
def test_an_edit_takes_its_trait_away_and_plain_autograd_runs_what_is_left(drawn: Drawn, trait: str) -> None:
    """One that cannot be made leaves the case as it is."""
    removed = 0
    for kind in KINDS:
        for case in [c for c in drawn[kind] if trait in traits(c)][:25]:
            for edit in by_trait()[trait]:
                edited = edit(case)
                record = execute(edited, reference(kind))
                assert valid(record, edited), (case_source(case), case_source(edited), record.raised)
                assert declares_what_runs(edited, record), (case_source(case), case_source(edited))
                removed += trait not in traits(edited)
    assert removed


@pytest.mark.parametrize("trait", by_trait())
def test_an_edit_leaves_a_case_without_its_trait_as_plain_as_it_was(drawn: Drawn, trait: str) -> None:
    """It may be made of any case."""
    for kind in KINDS:
        for case in [c for c in drawn[kind] if trait not in traits(c)][:8]:
            for edit in by_trait()[trait]:
                assert trait not in traits(edit(case))


def valid(record: Record, case: Case) -> bool:
    return record.raised is None or "reference-raises" in traits(case)


def declares_what_runs(case: Case, record: Record) -> bool:
    """Are shape, dtype and flag of every output those that the case declares?"""
    known = Facts(case).specs
    for leaf, (segment, path) in record.places.items():
        name = dict(walk(case.program.segments[segment].output))[path]
        tensor = record.tensors["output", leaf]
        assert isinstance(name, Name)
        assert tensor is not None
        spec = known[name.name]
        dtype = str(tensor.dtype).removeprefix("torch.")
        flag = record.facts["output", leaf, "requires-grad"]
        if (tuple(tensor.shape), flag) != (spec.shape, spec.requires_grad) or (spec.dtype not in ("float", dtype)):
            return False
    return True


# smaller and simpler ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("candidates", [dataflow.smaller, specs.simpler])
@pytest.mark.parametrize("kind", KINDS)
def test_a_candidate_runs_or_is_refused_by_torch(
    drawn: Drawn, kind: Kind, candidates: Callable[[Case], Iterator[Case]]
) -> None:
    """Never does it raise something that is a mistake of ours. Simpler ones are valid without exception."""
    refused: Counter[str] = Counter()
    tried = 0
    for case in drawn[kind][:60]:
        for candidate in candidates(case):
            tried += 1
            record = execute(candidate, reference(kind))
            if valid(record, candidate):
                assert record.raised or declares_what_runs(candidate, record), (case_source(case), case_source(candidate))
                continue
            assert record.raised is not None
            assert record.raised.type not in OURS, (case_source(case), case_source(candidate), record.raised)
            refused[record.raised.message[:60]] += 1
    assert tried > 500
    assert refused.total() <= (0 if candidates is specs.simpler else 0.02 * tried), refused


@pytest.mark.parametrize("kind", KINDS)
def test_a_smaller_case_has_fewer_parts(drawn: Drawn, kind: Kind) -> None:
    """Fewer segments, statements, inputs or outputs: so shrinking ends."""

    def parts(case: Case) -> tuple[int, int, int]:
        segments = case.program.segments
        leaves = sum(len(list(walk(tree))) + (not isinstance(tree, Name)) for s in segments for tree in (*s.inputs, s.output))
        return len(segments), case.size, leaves

    for case in drawn[kind][:60]:
        for candidate in dataflow.smaller(case):
            assert parts(candidate)[:2] < parts(case)[:2] or parts(candidate) < parts(case), case_source(candidate)


@pytest.mark.parametrize("kind", KINDS)
def test_candidates_are_cases_like_others(drawn: Drawn, kind: Kind) -> None:
    """They survive JSON, and so can be stored."""
    for case in drawn[kind][:40]:
        for candidate in (*dataflow.smaller(case), *specs.simpler(case)):
            assert Case.from_json(candidate.to_json()) == candidate


def test_a_statement_can_be_taken_out_of_the_middle(write: Write) -> None:
    case = write(["h0 = sin(x0)", "h1 = tanh(h0)", "h2 = relu(h1)"])
    found = [[s.operation for s in c.program.statements] for c in dataflow.smaller(case)]

    assert ["sin", "relu"] in found
    assert ["tanh", "relu"] in found
    assert ["sin", "tanh"] in found


def test_a_value_that_was_computed_before_can_be_handed_in(write: Write) -> None:
    """So that what follows stays, whatever made it."""
    case = write(["h0 = mean_dim(x0)", "h1 = relu(h0)"])
    handed = [c for c in dataflow.smaller(case) if [s.operation for s in c.program.statements] == ["relu"]]

    assert [case.program.statements[0].results[0].spec.shape] in [[p.spec.shape for p in c.primals] for c in handed]


def test_two_segments_can_become_one(write: Write) -> None:
    case = write("h0 = mul(x0, x1)", "h1 = mul(h0, x1)", primals=[X0, X1])
    merged = [c for c in dataflow.smaller(case) if len(c.program.segments) == 1 and c.size == 2]

    assert merged
    assert execute(merged[0], reference("checkpoint")).raised is None


X0, X1 = (Primal(f"x{i}", Spec((2, 3), requires_grad=True), i + 1) for i in range(2))


def test_a_shared_module_is_owned_by_whoever_is_left(write: Write) -> None:
    case = write("h0 = square_linear(x0) @ a", "h1 = square_linear(h0) @ a")
    for candidate in dataflow.smaller(case):
        owners = [s for s in candidate.program.statements if s.module == "a" and s.owner]
        assert len(owners) == 1, case_source(candidate)


def test_an_operation_is_replaced_by_a_simpler_one(write: Write) -> None:
    found = [c.program.statements[0].operation for c in specs.simpler(write("h0 = gelu_module(x0)"))]

    assert "sin" in found
    assert list(specs.simpler(write("h0 = sin(x0)"))) == []


def test_a_module_that_others_share_is_not_replaced(write: Write) -> None:
    """They would call what is not there."""
    case = write(["h0 = mlp(x0) @ a", "h1 = mlp(h0) @ a"])

    for candidate in specs.simpler(case):
        assert execute(candidate, reference("checkpoint")).raised is None


def test_a_shape_is_made_smaller_all_along(write: Write) -> None:
    case = write(
        ["h0 = softmax(x0)", "h1 = mul(h0, p0)"],
        primals=[Primal("x0", Spec((2, 4, 3), requires_grad=True))],
        parameters=[Parameter("p0", (3,), 0)],
    )
    shapes = {c.program.statements[-1].results[0].spec.shape for c in specs.simpler(case)}

    assert {(2, 3), (3,)} <= shapes


# what edits are made of -------------------------------------------------------------------------------------------------

FIELDS = ("first", "second", "third")
TREE = Container("dict", (Container("namedtuple", (Name("x"), Constant(1), Name("y")), FIELDS), Name("z")), ("a", "b"))


@pytest.mark.parametrize(
    ("dropped", "left"),
    [
        (
            {"x"},
            Container("dict", (Container("namedtuple", (Constant(1), Name("y")), ("first", "second")), Name("z")), ("a", "b")),
        ),
        ({"z"}, Container("dict", (TREE.children[0],), ("a",))),
        ({"x", "y", "z"}, Container("dict", (Container("namedtuple", (Constant(1),), ("first",)),), ("a",))),
        (set(), TREE),
    ],
)
def test_a_pruned_tree_is_a_tree_that_prints(dropped: set[str], left: Tree) -> None:
    """The fields of a namedtuple are named by their number, the keys of a dict stay."""
    assert pruned(TREE, lambda leaf: not (isinstance(leaf, Name) and leaf.name in dropped)) == left


def test_nothing_is_left_of_a_tree_without_leaves() -> None:
    assert pruned(TREE, lambda _: False) is None
    assert pruned(Name("x"), lambda _: False) is None


def test_trees_can_be_changed_leaf_by_leaf() -> None:
    inner = TREE.children[0]
    assert isinstance(inner, Container)
    assert as_dicts(TREE) == Container("dict", (Container("dict", inner.children, inner.keys), Name("z")), ("a", "b"))
    assert substituted(Container("list", (Name("x"), Constant(1))), {"x": "y"}) == Container("list", (Name("y"), Constant(1)))
    assert flattened([Name("x")]) == Name("x")
    assert flattened([Constant(1)]) == Container("tuple", (Constant(1),))
    assert flattened([Name("x"), Name("y")]) == Container("tuple", (Name("x"), Name("y")))


def test_later_are_the_values_that_following_segments_are_passed(write: Write) -> None:
    program = write("h0 = sin(x0)", "h1 = tanh(h0)", "h2 = mul(h1, h0)").program

    assert [later(program, index) for index in range(3)] == [{"h0", "h1"}, {"h0", "h1"}, set()]  # type: ignore[arg-type]


def test_every_output_can_be_made_to_receive_something(write: Write) -> None:
    case = write(["h0 = sin(x0)", "h1 = tanh(x0)", "h2 = detach(x0)"], cotangents=[Cotangent(0, "[0]")])
    reached = reaching(case)

    assert {(c.segment, c.path) for c in reached.cotangents} == {(0, "[0]"), (0, "[1]")}
    assert reached.cotangents[0] == case.cotangents[0]
    assert "none-cotangent" not in traits(reached)
