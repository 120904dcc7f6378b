"""A recording says what every node of a backward received and returned, and changes nothing."""

from pathlib import Path
from typing import Any

import msgspec
import networkx
import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

import gradcheck_plus as gp
from gradcheck_plus.graph import RecordingData


def leaf(*shape: int) -> Tensor:
    """Return values that require grad."""
    return torch.arange(1.0, 1 + torch.Size(shape).numel()).reshape(shape).requires_grad_()


def model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))


def gradients(module: nn.Module) -> list[Any]:
    return [parameter.grad.tolist() for parameter in module.parameters() if parameter.grad is not None]


def test_nodes_come_in_backward_order_with_what_they_received_and_returned() -> None:
    x = leaf(2, 3)
    recording = gp.record_backward(x.exp().sum(), names={"x": x})

    assert [(node.index, node.name, node.kind, node.leaf) for node in recording] == [
        (0, "SumBackward0", "torch", None),
        (1, "ExpBackward0", "torch", None),
        (2, "AccumulateGrad", "leaf", "x"),
    ]
    first, _, last = recording
    assert (first.received[0].shape, first.returned[0].shape) == ((), (2, 3))  # type: ignore[union-attr]
    assert (len(last.received), last.returned) == (1, ())
    assert last.received[0].norm == pytest.approx(x.exp().norm().item())  # type: ignore[union-attr]


@pytest.mark.parametrize("recorded", [True, False])
def test_recording_leaves_the_gradients_that_a_backward_leaves(recorded: bool) -> None:
    plain, other = model(), model()
    x = torch.ones(5, 4)
    plain(x).sum().backward()
    if recorded:
        with gp.record_forward() as forward:
            loss = other(x).sum()
        gp.record_backward(loss, forward=forward, values=True)
    else:
        gp.record_backward(other(x).sum())

    assert gradients(other) == gradients(plain)


def test_cotangents_are_taken_as_backward_takes_them() -> None:
    x = leaf(3)
    recording = gp.record_backward([x * 2, x * 3], [torch.ones(3), torch.full((3,), 2.0)], values=True)

    assert x.grad is not None
    assert x.grad.tolist() == [8.0] * 3
    assert {node.name for node in recording} == {"MulBackward0", "AccumulateGrad"}


def test_an_element_that_is_not_finite_is_counted() -> None:
    x = torch.tensor([0.0, 4.0], requires_grad=True)
    node = gp.record_backward(x.sqrt().sum()).nodes[1]

    assert str(node.returned[0]) == "float32[2] (1 of 2 not finite)"


def test_a_norm_may_be_larger_than_its_dtype() -> None:
    x = torch.ones(4, dtype=torch.float16, requires_grad=True)
    (node,) = gp.record_backward(x, torch.full((4,), 60000.0, dtype=torch.float16))

    assert node.received[0] == gp.graph.Gradient((4,), "float16", 120000.0, 0)


def test_a_tied_parameter_has_all_its_names() -> None:
    module = nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": nn.Linear(2, 2, bias=False)})
    module["b"].weight = module["a"].weight
    recording = gp.record_backward(module["b"](torch.ones(2)).sum(), names=module)

    assert recording.nodes[-1].leaf == "a.weight = b.weight"


def test_hooks_stay_only_for_the_backward() -> None:
    x, seen = leaf(3), []
    y = x.sin()
    gp.record_backward(y.sum(), retain_graph=True, values=True)
    recording = gp.record_backward(y.sum(), retain_graph=True)
    y.sum().backward()
    seen += list(recording)

    assert [node.name for node in seen] == ["SumBackward0", "SinBackward0", "AccumulateGrad"]


def test_deep_graphs_need_no_recursion() -> None:
    y = leaf(1)
    for _ in range(10_000):
        y = y + 1
    recording = gp.record_backward(y)

    assert len(recording) == 10_001
    assert str(recording).startswith("10001 nodes in backward order, the first 100 of them\n")
    assert networkx.number_of_nodes(recording.to_networkx()) == 10_001


def test_the_source_line_is_that_outside_torch() -> None:
    with gp.record_forward() as forward:
        loss = model()(torch.ones(4)).sum()
    sources = {
        Path(str(node.source)).name.partition(":")[0] for node in gp.record_backward(loss, forward=forward) if node.source
    }

    assert sources == {Path(__file__).name}


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled")
def test_the_source_line_is_known_from_anomaly_mode_too() -> None:
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        loss = leaf(3).sin().sum()

    assert Path(str(gp.record_backward(loss).nodes[1].source)).name.startswith(f"{Path(__file__).name}:")


def test_where_the_source_line_is_not_known_it_is_none() -> None:
    recording = gp.record_backward(leaf(3).sin().sum())

    assert [node.source for node in recording] == [None, None, None]
    assert "source lines are not known: record the forward with gp.record_forward()" in str(recording)


def test_the_operation_is_what_the_node_tells_where_the_forward_was_not_recorded() -> None:
    assert [node.operation for node in gp.record_backward(leaf(3).sin().sum())] == ["Sum", "Sin", None]


def test_saved_tensors_are_described_until_they_are_freed() -> None:
    kept = gp.record_backward(leaf(3).sin().sum(0), retain_graph=True)
    freed = gp.record_backward(leaf(3).sin().sum(0))

    assert [node.saved.get("self") for node in kept] == [None, "float32[3]", None]
    assert [node.saved.get("self") for node in freed] == [None, "nothing, or freed", None]
    assert kept.nodes[0].saved["dim"] == "(0,)"


def test_what_a_checkpoint_holds_back_is_not_recomputed_to_be_shown() -> None:
    runs = []

    def function(x: Tensor) -> Tensor:
        runs.append(x)
        return x.sin()

    recording = gp.record_backward(checkpoint(function, leaf(3), use_reentrant=False).sum(), retain_graph=True)
    before = len(runs)

    assert recording.nodes[1].saved["self"] == "not read: an unpack hook stands before it"
    assert len(runs) == before


def test_the_hooks_of_a_leaf_are_listed_in_the_order_in_which_they_run() -> None:
    x, order = leaf(3), []

    def after(_: Tensor) -> None:
        order.append("after")

    def before(_: Tensor) -> None:
        order.append("before")

    x.register_post_accumulate_grad_hook(after)
    x.register_hook(before)
    recording = gp.record_backward(x.sum())

    assert [name.rpartition(".")[2] for name in recording.nodes[-1].hooks] == order == ["before", "after"]


def test_a_recording_goes_through_json() -> None:
    recording = gp.record_backward(model()(torch.ones(4)).sum(), names=model())

    assert msgspec.json.decode(recording.to_json(), type=RecordingData) == recording.data()


def test_a_graph_has_an_edge_for_each_gradient_that_is_due() -> None:
    x = leaf(3)
    graph = gp.record_backward((x * x).sum(), names={"x": x}).to_networkx()

    assert sorted((a, b, data["slot"]) for a, b, data in graph.edges(data=True)) == [(0, 1, 0), (1, 2, 0), (1, 2, 1)]
    assert graph.nodes[2]["leaf"] == "x"


def test_the_rank_is_known_where_there_are_several_processes(tmp_path: Path) -> None:
    assert gp.record_backward(leaf(1)).rank is None
    torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/meet", rank=0, world_size=1)
    try:
        recording = gp.record_backward(leaf(1))
    finally:
        torch.distributed.destroy_process_group()

    assert recording.rank == 0
    assert "rank 0" in str(recording)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        ([], r"`outputs`=\[\] has no tensor"),
        ([3], r"`outputs\[0\]` is a int. Give tensors"),
        ([torch.ones(1)], r"`outputs\[0\].requires_grad`=False"),
    ],
)
def test_what_no_backward_starts_from_is_refused(outputs: Any, message: str) -> None:
    with pytest.raises(gp.InvalidArgument, match=message):
        gp.record_backward(outputs)


def test_names_are_those_of_a_module_or_a_dict() -> None:
    with pytest.raises(gp.InvalidArgument, match="`names` is a list"):
        gp.record_backward(leaf(1), names=["x"])  # type: ignore[arg-type]


def test_functions_are_seen_in_nested_recordings_and_none_after() -> None:
    with gp.record_forward() as outer:
        with gp.record_forward() as inner:
            y = leaf(3).sin()
        z = y.cos().sum()

    assert (len(inner), len(outer)) == (1, 3)
    assert gp.record_backward(z, forward=outer).nodes[2].operation == "aten.sin.default"


def test_what_a_function_saved_is_described_and_what_its_ctx_holds() -> None:
    class Scaled(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            ctx.save_for_backward(x)
            ctx.scale = 2
            return torch.mul(x, 2)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            return grads[0] * ctx.scale

    apply: Any = Scaled.apply
    kept = gp.record_backward(apply(leaf(3)).sum(), retain_graph=True).nodes[1]
    freed = gp.record_backward(apply(leaf(3)).sum()).nodes[1]

    assert kept.saved == {"tensors": "float32[3]", "ctx.scale": "2"}
    assert freed.saved == {"tensors": "freed", "ctx.scale": "2"}
