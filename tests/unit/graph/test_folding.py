"""A graph of any size is folded into as many boxes as fit in a picture."""

from collections.abc import Sequence
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from gradcheck_plus.graph.folding import MOST, Folded, fold, modules
from gradcheck_plus.graph.structs import Gradient, RecordedNode
from gradcheck_plus.report.picture import picture

GRADIENT = Gradient((2,), "float32", 1.0, 0)


def node(index: int, path: str | None, *leads_to: int, leaf: str | None = None, parent: int | None = None) -> RecordedNode:
    return RecordedNode(
        index=index,
        name="AccumulateGrad" if leaf else "AddBackward0",
        kind="leaf" if leaf else "torch",
        received=(GRADIENT,),
        returned=(GRADIENT,) * len(leads_to),
        leaf=leaf,
        operation=None,
        path=path,
        source=None,
        saved={},
        hooks=(),
        leads_to=leads_to,
        backward=0 if parent is None else 1,
        parent=parent,
    )


def chain(paths: Sequence[str]) -> list[RecordedNode]:
    return [node(i, path, *([i + 1] if i + 1 < len(paths) else [])) for i, path in enumerate(paths)]


def places(folded: Folded) -> list[int]:
    return [node.index for box in folded.boxes for node in box.nodes]


@pytest.mark.parametrize(
    "paths",
    [
        [""] * 10_000,
        [f"layers.{i // 10}.step{i % 10}" for i in range(10_000)],
        [f"layers.{i // 1000}.step{i % 10}" for i in range(10_000)],
        [".".join("a" * (i % 50 + 1)) for i in range(10_000)],
        ["", "a", "a.b"],
        [""],
    ],
    ids=["flat", "many modules", "few modules", "deep modules", "small", "one"],
)
def test_every_node_is_in_one_box_and_no_more_boxes_than_may_be(paths: list[str]) -> None:
    folded = fold(chain(paths))

    assert places(folded) == list(range(len(paths)))
    assert min(len(paths), 8) <= len(folded.boxes) <= MOST
    assert all(link.before < link.after for link in folded.links)


def test_modules_are_opened_as_far_as_there_is_room() -> None:
    paths = [f"layers.{i // 100}.step{i % 10}" for i in range(1000)]

    assert [box.first for box in fold(chain(paths)).boxes] == [f"layers.{i}" for i in range(10)]


def test_a_module_that_is_called_twice_is_two_boxes() -> None:
    paths = [name for i in range(30) for name in ["shared"] * 5 + [f"own{i % 2}"] * 5]

    assert [box.first for box in fold(chain(paths)).boxes][:4] == ["shared", "own0", "shared", "own1"]


def test_a_leaf_belongs_to_what_sends_to_it() -> None:
    nodes = [node(0, "attention", 1, 2), node(1, None, leaf="attention.out.weight"), node(2, "norm")]

    assert modules(nodes) == ["attention", "attention", "norm"]


def test_a_backward_within_another_lies_between_what_starts_it_and_what_it_belongs_to() -> None:
    nodes = [node(0, "", 3), node(1, "layer", 2, parent=3), node(2, "layer", parent=3), node(3, "")]
    links = {(link.before, link.after, link.kind) for link in fold(nodes).links}

    assert links == {(0, 3, "gradients"), (1, 2, "gradients"), (0, 1, "starts"), (2, 3, "ends")}


def test_no_node_is_no_box() -> None:
    assert fold([]) == Folded((), ())


def test_a_picture_escapes_what_it_is_given_and_stays_small() -> None:
    text = picture(chain([f"<&'{i % 700}" for i in range(10_000)]), "a < b & c")
    root = ElementTree.fromstring(text)

    assert root.findtext("{http://www.w3.org/2000/svg}title") == "a < b & c"
    assert len(text) < 300_000


def test_boxes_of_a_picture_do_not_overlap() -> None:
    wide = [node(0, "", *range(1, 20)), *(node(i, f"branch{i}", 20) for i in range(1, 20)), node(20, "")]
    root = ElementTree.fromstring(picture(wide, "wide"))
    found = [rect.attrib for group in root.iter("{http://www.w3.org/2000/svg}g") for rect in group if "rx" in rect.attrib]
    spans = sorted((float(r["y"]), float(r["x"]), float(r["x"]) + float(r["width"])) for r in found)

    assert len(spans) == 21
    assert all(end <= start for (y, _, end), (below, start, _) in pairwise(spans) if y == below)
