"""A backward, with everything that its nodes received and returned."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import msgspec
import torch
from rich.table import Table

from gradcheck_plus.graph import showing
from gradcheck_plus.graph.forward import Call, ForwardRecording
from gradcheck_plus.graph.node import Node
from gradcheck_plus.graph.paths import Entry
from gradcheck_plus.graph.structs import NodeCheck, RecordingData
from gradcheck_plus.graph.walk import leaf_names, roots
from gradcheck_plus.graph.watching import Watch

if TYPE_CHECKING:
    import networkx


@dataclass(frozen=True, eq=False, repr=False)
class Recording:
    """The nodes of one backward, in the order in which they ran. ``print`` shows the first hundred as a table.

    It holds the graph, so what the nodes saved lives as long as it does if the backward was recorded with `retain_graph`.

    Attributes:
        nodes: every node that ran, those that add to the ``.grad`` of a leaf included.
        rank: of this process in `torch.distributed`, None where that is not initialised.
        calls: every operation in the order in which they ran, where a whole run was recorded.
        entries: every call of a module, where a whole run was recorded.
        results: the gradients that each outermost backward returned to its caller, where a whole run was recorded.
        raised: the exception that ended it, where a whole run was recorded and one did.
        gradients: the ``.grad`` of every named leaf in the end, by name, where a whole run was recorded.
    """

    nodes: tuple[Node, ...]
    rank: int | None
    calls: tuple[Call, ...] = ()
    entries: tuple[Entry, ...] = ()
    results: tuple[tuple[torch.Tensor | None, ...], ...] = ()
    raised: BaseException | None = None
    gradients: Mapping[str, torch.Tensor | None] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __str__(self) -> str:
        return showing.as_text(self.nodes, self.rank)

    def __repr__(self) -> str:
        return f"<Recording of {len(self)} nodes>"

    def table(self) -> Table:
        """Return all nodes as a table for `rich`."""
        return showing.table(self.nodes)

    def data(self) -> RecordingData:
        """Return the recording as data, without the values."""
        return RecordingData(torch=str(torch.__version__), rank=self.rank, nodes=tuple(node.data() for node in self.nodes))

    def to_json(self) -> str:
        """Return `data` as JSON; ``msgspec.json.decode(text, type=RecordingData)`` reads it again."""
        return msgspec.json.encode(self.data()).decode()

    def to_networkx(self) -> "networkx.MultiDiGraph":
        """Return the graph: each node's index with the fields of its `data`, each edge with `slot` and `gradient`.

        An edge leads from the node that returned a gradient to the one that received it, perhaps as a summand.
        """
        return showing.to_networkx(self.nodes)

    def check(self) -> list[NodeCheck]:
        """Compare the rule of every node, save those of leaves, with central differences of its forward in float64.

        Forward and backward of each node are run again in float64, with the inputs that they had, where the forward can be
        redone: it was recorded with `record_forward`, what went in and came out was not changed since, it gives the same bits
        again, and it computes in float64 if its inputs are. Where one of these is not so, the verdict is ``inconclusive``, with
        the reason. Cotangents are random, so that a rule that is right for those of this backward only is found too. Where the
        forward has a kink, the rule is judged close by. Cotangents with other strides must give the same. What is judged is the
        rule, not this one use of it: state that a Function keeps outside its `ctx` is not seen.

        Example:
            >>> import torch
            >>> import gradcheck_plus as gp
            >>> class Double(torch.autograd.Function):
            ...     @staticmethod
            ...     def forward(ctx, x):
            ...         return 2 * x
            ...
            ...     @staticmethod
            ...     def backward(ctx, grad):
            ...         return 3 * grad
            >>> x = torch.ones(3, requires_grad=True)
            >>> with gp.record_forward() as forward:
            ...     loss = Double.apply(x).sin().sum()
            >>> [(check.node, check.verdict) for check in gp.record_backward(loss, forward=forward).check()]
            [('SumBackward0', 'match'), ('SinBackward0', 'match'), ('DoubleBackward', 'fault')]
        """
        return [node.check() for node in self.nodes if node.kind != "leaf"]


def record_backward(
    outputs: torch.Tensor | Iterable[torch.Tensor],
    cotangents: torch.Tensor | Sequence[torch.Tensor | None] | None = None,
    *,
    names: torch.nn.Module | Mapping[str, torch.Tensor] | None = None,
    forward: ForwardRecording | None = None,
    values: bool = False,
    retain_graph: bool = False,
) -> Recording:
    """Run a backward and record what every node received and returned.

    The backward is that of ``torch.autograd.backward(outputs, cotangents)``: it adds to the ``.grad`` of the leaves, and fires
    the hooks that are there. A backward that is started while it runs, as by a reentrant checkpoint, is recorded too: its nodes
    come before the one that started it, which is their `parent`.

    Args:
        outputs: the tensors to start from.
        cotangents: one for each output and shaped like it; None is 1 for a scalar.
        names: the module whose parameters are to be named, or leaves by name.
        forward: what `record_forward` saw of the forward. Without it, the source line of a node is known only if the forward
            ran in torch's anomaly mode, and no node can be checked.
        values: keep the gradients themselves too.
        retain_graph: keep what the nodes saved, which a replay needs.

    Raises:
        InvalidArgument: there is nothing to start from.

    Example:
        >>> import torch
        >>> import gradcheck_plus as gp
        >>> model = torch.nn.Linear(2, 3)
        >>> recording = gp.record_backward(model(torch.ones(4, 2)).mean(), names=model)
        >>> [(node.name, node.leaf) for node in recording if node.name != "TBackward0"]
        [('MeanBackward0', None), ('AddmmBackward0', None), ('AccumulateGrad', 'bias'), ('AccumulateGrad', 'weight')]
        >>> print(*recording.nodes[0].received, *recording.nodes[0].returned)
        float32[] |1| float32[4, 3] |0.2887|
    """
    starts, named = roots(outputs), leaf_names(names)
    watch = Watch(values=values)
    with watch.watching():
        torch.autograd.backward(starts, cotangents, retain_graph=retain_graph)
    return Recording(nodes_of(watch, named, forward), rank())


def nodes_of(watch: Watch, named: Mapping[torch.Tensor, str], forward: ForwardRecording | None) -> tuple[Node, ...]:
    """Return what was watched as nodes."""
    # A node may run in several backwards: what it returns goes to the next run of the node that it leads to, in its own.
    place: dict[Any, list[int]] = {}
    for index, one in enumerate(watch.seen):
        place.setdefault(one.grad_fn, []).append(index)

    def following(index: int, node: Any, backward: int | None = None) -> int | None:
        later = [i for i in place.get(node, ()) if i > index and backward in (None, watch.seen[i].backward)]
        return later[0] if later else None

    return tuple(
        Node(
            index=index,
            grad_fn=one.grad_fn,
            received=one.received,
            returned=one.returned,
            received_values=one.received_values,
            returned_values=one.returned_values,
            leads_to=tuple(following(index, after, one.backward) for after in watch.graph[one.grad_fn]),
            leaf=named.get(leaf) if (leaf := getattr(one.grad_fn, "variable", None)) is not None else None,
            call=forward.call(one.grad_fn) if forward else None,
            materialises=watch.materialises.get(one.grad_fn) if None in one.received else None,
            outputs=watch.starts[one.backward],
            backward=one.backward,
            parent=following(index, watch.parents[one.backward]),
        )
        for index, one in enumerate(watch.seen)
    )


def rank() -> int | None:
    """Return the rank of this process, if it is one of several."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized()):
        return None
    return torch.distributed.get_rank()
