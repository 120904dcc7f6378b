"""The first place at which two runs part."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from traceback import walk_tb
from types import FrameType

import msgspec
import torch

from gradcheck_plus.compat import forward_class, tensors
from gradcheck_plus.divergence import Direction, Divergence, DivergenceKind
from gradcheck_plus.errors import said
from gradcheck_plus.graph.alignment import aligned_calls, aligned_nodes
from gradcheck_plus.graph.comparing import Nearness, described, size, total
from gradcheck_plus.graph.forward import Call, Value, line_of, passed_over
from gradcheck_plus.graph.node import Node, Values
from gradcheck_plus.graph.recording import Recording

#: Stands for the gradient of a leaf that a run does not know.
_MISSING = torch.empty(0)


def divergence(reference: Recording, subject: Recording, *, known: bool = False) -> Divergence | None:
    """Return where two recordings part first, None where they do not.

    What is only rounded otherwise counts where nothing else differs. If it is `known` that they part, and nothing that was
    recorded does, it is a leaf that is sent its gradient in another number of parts, if there is one.
    """
    return Comparison(reference, subject).first(known=known)


class Comparison:
    """Two recordings, aligned."""

    def __init__(self, reference: Recording, subject: Recording) -> None:
        self.reference, self.subject = reference, subject
        # Recordings of one backward know the calls of its nodes only.
        mine, theirs = ([*r.calls, *(n.call for n in r if n.call and not r.calls)] for r in (reference, subject))
        self.calls = aligned_calls(mine, theirs)
        self.nodes = aligned_nodes(reference, subject, self.calls)

    @cached_property
    def levels(self) -> tuple[Nearness, Nearness]:
        """What counts as the same: near enough, and where nothing is further apart than that, only the same bits."""
        floor = size(value for node in self.reference for value in node.received_values or ())
        return Nearness(exact=False, floor=floor), Nearness(exact=True)

    def first(self, *, known: bool = False) -> Divergence | None:
        """Return where the two part first; see `divergence`."""
        if (self.reference.raised is None) != (self.subject.raised is None):
            return self._recomputed_before_it_raises() or self._raising()
        found = next((place for nearness in self.levels for place in self._places(nearness)), None)
        return found or (next(self._parts(), None) if known else None)

    def _places(self, nearness: Nearness) -> Iterator[Divergence]:
        """Yield the places at which the two part, the first one first: in the forwards, then in the backward."""
        yield from self._forwards(nearness)
        yield from self._backwards(nearness)
        yield from self._leaves(nearness)
        yield from self._results(nearness)

    # exceptions -----------------------------------------------------------------------------------------------------

    def _recomputed_before_it_raises(self) -> Divergence | None:
        """Return where a forward is recomputed otherwise, if it is and the subject raises: that is why."""
        if self.subject.raised is None:
            return None
        found = next((d for d in self._forwards(self.levels[0]) if d.kind == "recompute-differs"), None)
        raised = f"; the subject then raises {type(self.subject.raised).__name__}"
        return msgspec.structs.replace(found, message=found.message + raised) if found else None

    def _raising(self) -> Divergence:
        """Return where one of the two raises and the other one does not."""
        error, who, where = (
            (self.subject.raised, "the subject", self.subject)
            if self.subject.raised is not None
            else (self.reference.raised, "the reference", self.reference)
        )
        assert error is not None
        frame, source = _innermost(error)
        own = next((f"{c.function.__name__}Backward" for c in where.calls if c.is_function and _runs(c, frame)), None)
        last = self._stopped_at(where) if own is None else None
        name = own or (last.name if last else type(error).__name__)
        source = source or (last.source if last else "") or ""
        first = said(error).partition("\n")[0]
        text = f"{who} alone raises {type(error).__name__}{f' at {name}' if own or last else ''}: {first}"
        direction: Direction = "backward" if where.nodes or last else "forward"
        return Divergence(name, line_of(source), direction, "raises", source, text)

    def _stopped_at(self, where: Recording) -> Node | None:
        """Return the first node that ran in the other run and not in the one that ended early, if a backward had begun."""
        if where is self.reference:
            return next((n for n in self.subject if not self.known(n)), None)
        return next((n for n in self.reference if n.index not in self.nodes), None) if where.nodes else None

    # forwards -------------------------------------------------------------------------------------------------------

    def _forwards(self, nearness: Nearness) -> Iterator[Divergence]:
        for call in self.subject.calls:
            other = self.calls.get(call)
            if other is None or not any(_apart(other.after, call.after, nearness)):
                continue
            # In a forward, operations may be of one line though somebody else runs them; what is recomputed has one origin.
            if call.backward is not None or self._as_many(call):
                yield self._forward(call, other, nearness)
        yield from self._other_modes()

    def _forward(self, call: Call, other: Call, nearness: Nearness) -> Divergence:
        """Say which value differs first where an operation gives another result: one that went in, or the result."""
        again = call.backward is not None
        kind: DivergenceKind = "recompute-differs" if again else "forward-differs"
        what = "the recomputed forward differs" if again else "the forward differs"
        mode = self._mode(call.path, call.backward)
        for index, a, b in _apart(other.before, call.before, nearness):
            maker = self._maker(other, index)
            if maker is not None and self._due(maker, call.backward) and not self._ran(maker, call.backward):
                return _at(maker, kind, f"{what} first at {_named(maker)}, which does not run again as it did{mode}")
            name = self._leaf(other, index) or f"tensor input {index}"
            value = f"the value of {name} that goes into {_named(other)}"
            return _at(other, kind, f"{what} first in {value}: {described(a, b)}{mode}")
        _, a, b = next(_apart(other.after, call.after, nearness))
        return _at(other, kind, f"{what} first in what {_named(other)} gives: {described(a, b)}{mode}")

    def _as_many(self, call: Call) -> bool:
        """Do both run an operation of this name as often at this line, outside of any backward?"""
        here = [
            sum((c.name, c.source, c.backward) == (call.name, call.source, None) for c in run.calls)
            for run in (self.reference, self.subject)
        ]
        return here[0] == here[1]

    def _other_modes(self) -> Iterator[Divergence]:
        """Yield the modules that are recomputed in another mode, where every operation that runs again gives the same."""
        for entry in self.subject.entries:
            if entry.backward is None or not (mode := self._mode(entry.path, entry.backward)):
                continue
            here = [c for c in self.reference.calls if c.path == entry.path and not c.within]
            left_out = [c for c in here if not self._ran(c, entry.backward)]
            if left_out:
                text = f"the recomputed forward differs first at {_named(left_out[0])}, which does not run again{mode}"
                yield _at(left_out[0], "recompute-differs", text)

    def _mode(self, path: str | None, backward: int | None) -> str:
        """Say in which mode a module runs in a backward, if the reference runs it in another one; else nothing."""
        usual = {entry.modes for entry in self.reference.entries if entry.path == path}
        here = [entry.modes for entry in self.subject.entries if entry.path == path and entry.backward == backward]
        odd = next((modes for modes in here if modes not in usual), None)
        if odd is None or not usual:
            return ""
        words = [word for word, due in zip(odd, next(iter(usual)), strict=True) if word != due]
        return f"; the module runs {' and '.join(words)} there"

    def _due(self, maker: Call, backward: int | None) -> bool:
        """Is an operation part of what a subject runs in this forward or backward?"""
        return any(entry.path == maker.path and entry.backward == backward for entry in self.subject.entries)

    def _maker(self, call: Call, index: int) -> Call | None:
        """Return the operation of the reference that made a tensor which went into another one."""
        return self._makers.get(_given(call, index))

    @cached_property
    def _makers(self) -> dict[int | None, Call]:
        # The calls hold the tensors, so that no id is another tensor's.
        return {id(output): call for call in self.reference.calls for output in call.outputs}

    def _leaf(self, call: Call, index: int) -> str | None:
        names: dict[int | None, str | None] = {
            id(n.grad_fn.variable): n.leaf for n in self.reference if n.kind == "leaf" and n.leaf
        }
        return names.get(_given(call, index))

    def _ran(self, call: Call, backward: int | None) -> bool:
        """Did the subject run an operation of the reference in this forward or backward?"""
        return any(other is call and mine.backward == backward for mine, other in self.calls.items())

    # backwards ------------------------------------------------------------------------------------------------------

    def _backwards(self, nearness: Nearness) -> Iterator[Divergence]:
        for node in self.reference:
            if node.index not in self.nodes:
                yield from self._without_counterpart(node)
                continue
            others = [self.subject.nodes[index] for index in self.nodes[node.index]]
            if node.kind == "leaf":
                continue
            if wrong := nearness.gradients(node, others[0], "received"):
                yield self._arriving(node, others[0], wrong[0])
            elif wrong := nearness.gradients(node, others[0], "returned"):
                mine, theirs = node.call, others[0].call
                if mine and theirs and any(_apart(mine.before, theirs.before, nearness)):
                    yield self._forward(theirs, mine, nearness)  # not its rule: its forward was given something else
                else:
                    yield _rule(node, others[0], wrong[0])

    def _without_counterpart(self, node: Node) -> Iterator[Divergence]:
        """A node that the subject made, or whose operation it ran, but that no backward of its reached."""
        if node.kind == "leaf":  # a gradient may be put there without its node
            known = node.leaf is not None and self.subject.gradients.get(node.leaf, _MISSING) is None
        else:
            known = node.call in self._differentiated
        if known and any(g is not None for g in node.received):
            text = f"no gradient reaches {_named(node)}"
            yield _at(node, "gradient-missing", text, line=self._before(node) if node.kind == "leaf" else None)

    @cached_property
    def _differentiated(self) -> set[Call]:
        """The forward operations that the subject runs too, and not as part of a Function that has its own backward."""
        functions = {forward_class(node.grad_fn) for node in self.subject}
        return {o for call, o in self.calls.items() if o.backward is None and not functions.intersection(call.within)}

    def _arriving(self, node: Node, other: Node, slot: int) -> Divergence:
        """Say where a gradient comes from that is another one, though all nodes before agree."""
        how = _how(node.received_values, other.received_values, slot)
        if any(other.index in n.leads_to for n in self.subject):
            return self._added_up(node, other, how, line=node)
        if other.parent is not None:
            return _handed_on(self.subject.nodes[other.parent], node, how, line=node)
        text = f"the backward that starts at {_named(node)} is given another gradient{how}"
        return _at(node, "incoming-differs", text)

    def _added_up(self, node: Node, other: Node, how: str, *, line: Node | None) -> Divergence:
        """Say who of those that send a gradient is not in the reference, or that they add up otherwise."""
        strangers = (n for n in self.subject if other.index in n.leads_to and not self.known(n))
        if (stranger := next(strangers, None)) is not None:
            return _handed_on(stranger, node, how, line=line)
        text = f"the gradients that reach {_named(node)} add up otherwise{how}"
        return _at(node, "accumulation-differs", text, line=line)

    def known(self, node: Node) -> bool:
        """Has a node of the subject a counterpart in the reference?"""
        return node.index in self._counterparts

    @cached_property
    def _counterparts(self) -> set[int]:
        return {index for others in self.nodes.values() for index in others}

    # leaves ---------------------------------------------------------------------------------------------------------

    def _leaves(self, nearness: Nearness) -> Iterator[Divergence]:
        """Compare what leaves were sent, each in sum, and then what they have in the end."""
        for nodes, others in self.leaf_groups():
            expected, got = total(nodes), total(others)
            if not nearness.tensors(expected, got, size(v for n in nodes for v in n.received_values or ())):
                how = f": {described(expected, got)}"
                yield self._added_up(nodes[0], others[0], how, line=self._before(nodes[0]))
        for name, expected in self.reference.gradients.items():
            got = self.subject.gradients.get(name)
            if name in self.subject.gradients and not nearness.tensors(expected, got):
                text = f"what is added to {name}.grad is right, but not what it is in the end: {described(expected, got)}"
                sender = next((n for n in self.reference if n.leaf == name), None)
                yield _at(self._before(sender) or name, "accumulation-differs", text)

    def _parts(self) -> Iterator[Divergence]:
        """Yield the leaves that are sent their gradient in more or fewer parts: their sum may have other last bits."""
        for nodes, others in self.leaf_groups():
            if len(nodes) != len(others):
                how = f": in {len(others)} parts, where {len(nodes)} are expected"
                yield self._added_up(nodes[0], others[0], how, line=self._before(nodes[0]))

    def leaf_groups(self) -> Iterator[tuple[list[Node], list[Node]]]:
        """Yield the runs of each leaf's node in the reference, with those in the subject."""
        groups: dict[tuple[int, ...], list[Node]] = defaultdict(list)
        for node in self.reference:
            if node.kind == "leaf" and node.index in self.nodes:
                groups[tuple(self.nodes[node.index])].append(node)
        yield from ((nodes, [self.subject.nodes[index] for index in indices]) for indices, nodes in groups.items())

    def _results(self, nearness: Nearness) -> Iterator[Divergence]:
        """Compare what the backwards returned, if as many ran: second derivatives show there only."""
        if [len(r) for r in self.reference.results] != [len(r) for r in self.subject.results]:
            return
        for number, (ours, theirs) in enumerate(zip(self.reference.results, self.subject.results, strict=True)):
            for slot, (a, b) in enumerate(zip(ours, theirs, strict=True)):
                if nearness.tensors(a, b):
                    continue
                stranger = next((n for n in self.subject if n.kind == "function" and not self.known(n)), None)
                where = f"gradient {slot} that backward {number} returns"
                by = f"; {_named(stranger)} ran in it, and not in the reference" if stranger else ""
                yield _at(stranger or where, "result-differs", f"{where} is another one: {described(a, b)}{by}")

    def _before(self, node: Node | None) -> Node | None:
        """Return a node that sends to a leaf, which has no line of its own."""
        return next((n for n in self.reference if node is not None and node.index in n.leads_to), None)


def _given(call: Call, index: int) -> int | None:
    """Return the id of a tensor that went into an operation, None if it was not kept."""
    given = tensors((call.args, call.kwargs))
    return id(given[index]) if index < len(given) else None


def _innermost(error: BaseException) -> tuple[FrameType | None, str]:
    """Return the innermost frame of an exception that is neither torch's nor ours, and its place; none if there is none."""
    frames = [(frame, f"{frame.f_code.co_filename}:{line}") for frame, line in walk_tb(error.__traceback__)]
    own = [(frame, place) for frame, place in frames if not passed_over(frame)]
    return own[-1] if own else (None, "")


def _runs(call: Call, frame: FrameType | None) -> bool:
    """Is this the backward of the Function that was called?"""
    return frame is not None and call.function.backward.__code__ is frame.f_code


def _rule(node: Node, other: Node, slot: int) -> Divergence:
    how = _how(node.returned_values, other.returned_values, slot)
    text = f"{_named(node)} received the same and returned another gradient of input {slot}{how}"
    return _at(node, "rule-differs", f"{text}; its rule is wrong, or what it saved was changed")


def _handed_on(by: Node, node: Node, how: str, *, line: Node | None) -> Divergence:
    return _at(by, "incoming-differs", f"{_named(by)} hands {_named(node)} another gradient{how}", line=line)


def _how(expected: Values | None, got: Values | None, slot: int) -> str:
    """Say how two gradients differ, if the values were kept."""
    a, b = (values[slot] if values is not None and slot < len(values) else None for values in (expected, got))
    return f": {described(a, b)}" if a is not None or b is not None else ""


def _apart(
    expected: Sequence[Value], got: Sequence[Value], nearness: Nearness
) -> Iterator[tuple[int, torch.Tensor, torch.Tensor]]:
    """Yield the values that are not near, each with its place. Bytes are the workspace of a kernel, never written whole."""
    for index, (a, b) in enumerate(zip(expected, got, strict=False)):
        if a.tensor.dtype != torch.uint8 and not nearness.tensors(a.tensor, b.tensor):
            yield index, a.tensor, b.tensor


def _named(what: Node | Call | str) -> str:
    if isinstance(what, str):
        return what
    name = what.name if isinstance(what, Node) else what.name.removeprefix("aten.").partition(".")[0]
    if isinstance(what, Node) and what.kind == "leaf":
        return what.leaf or name
    return f"{name} (module {what.path!r})" if what.path else name


def _at(
    what: Node | Call | str,
    kind: DivergenceKind,
    message: str,
    *,
    line: Node | None = None,
) -> Divergence:
    """Return a divergence at a node or operation, with the line of `line` where it has none of its own in the reference."""
    name = what if isinstance(what, str) else what.name
    source = next((s for s in (getattr(line, "source", None), getattr(what, "source", None)) if s), "")
    direction: Direction = "forward" if kind in ("forward-differs", "recompute-differs") else "backward"
    return Divergence(name, line_of(source), direction, kind, source, message)
