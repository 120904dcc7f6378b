"""Which operation of one run is which of another one, and which node."""

from collections import Counter, defaultdict
from collections.abc import Sequence

from gradcheck_plus.compat import tensors
from gradcheck_plus.graph.comparing import equal
from gradcheck_plus.graph.forward import Call, Value
from gradcheck_plus.graph.node import Node
from gradcheck_plus.graph.recording import Recording

#: What two calls have in common counts so much: the line, the values that go in, those that come out, the module.
_LINE, _INPUTS, _OUTPUTS, _MODULE = 4, 3, 3, 2


def aligned_calls(reference: Sequence[Call], subject: Sequence[Call]) -> dict[Call, Call]:
    """Return, for the operations of a subject that the reference runs too, which of its operations they are.

    An operation of the same name from the same line, in the same module or of the same values is the one; of several, that
    which has most of these in common, then the one whose result goes where its own goes, then the one whose turn it is. So a
    module that is called again is told apart although a reentrant checkpoint recomputes its calls in reverse. What is
    recomputed is aligned once more: an operation of the reference may be that of a forward and that of each backward.
    """
    known = _Known(reference)
    place = {call: index for index, call in enumerate(reference)}
    users, theirs = _users(reference), _users(subject)
    taken: dict[int | None, set[Call]] = defaultdict(set)
    uses: Counter[Call] = Counter()
    found: dict[Call, Call] = {}
    for call in reversed(subject):  # whoever uses a result is aligned before whoever made it
        like = known.likest(call)
        free = [other for other in like if other not in taken[call.backward]]
        if not free:  # one that is recomputed twice in one backward is recomputed in a nested checkpoint: from the same values
            free = [other for other in like if _same(call.before, other.before)]
        if free:
            goes_to = {found[user] for user in theirs[call] if user in found}
            found[call] = max(free, key=lambda other: (len(goes_to & users[other]), -uses[other], place[other]))
            taken[call.backward].add(found[call])
            uses[found[call]] += 1
    return found


def _users(calls: Sequence[Call]) -> dict[Call, set[Call]]:
    """Return which operations each one's outputs go into."""
    makers = {id(output): call for call in calls for output in call.outputs}  # held by the calls: no id is another's
    found: dict[Call, set[Call]] = {call: set() for call in calls}
    for call in calls:
        for given in tensors((call.args, call.kwargs)):
            if id(given) in makers:
                found[makers[id(given)]].add(call)
    return found


class _Known:
    """Operations, to be found by what they have in common with another one."""

    def __init__(self, calls: Sequence[Call]) -> None:
        self._by: dict[tuple[object, ...], list[Call]] = defaultdict(list)
        for call in calls:
            for key in self._keys(call):
                self._by[key].append(call)

    def likest(self, call: Call) -> list[Call]:
        """Return the operations that have most in common with one: first of those with the very same values."""
        keys = self._keys(call)
        for some in (keys[:1], keys[1:2], keys[2:]):
            others = dict.fromkeys(other for key in some for other in self._by.get(key, ()) if _may_be(call, other))
            if others:
                scores = {other: _likeness(call, other) for other in others}
                best = max(scores.values())
                return [other for other, score in scores.items() if score == best]
        return []

    @staticmethod
    def _keys(call: Call) -> list[tuple[object, ...]]:
        given, made = (tuple(value.digest for value in values) for values in (call.before, call.after))
        return [
            ("all", call.name, call.source, given, made),
            ("values", call.name, given, made),
            ("line", call.name, call.source),
            ("module", call.name, call.path),
            ("inputs", call.name, given),
        ]


def _may_be(call: Call, other: Call) -> bool:
    if [v.shape for v in call.before] != [v.shape for v in other.before]:
        return False
    if call.source == other.source:
        return True
    # Hooks on saved tensors run operations of their own in the module; in a recomputation the caller is another one.
    recomputed_here = call.backward is not None and call.path is not None and call.path == other.path
    return recomputed_here or (any(value.written for value in call.before) and _same(call.before, other.before))


def _likeness(call: Call, other: Call) -> int:
    return (
        _LINE * (call.source == other.source)
        + _MODULE * (call.path == other.path)
        + _INPUTS * _same(call.before, other.before)
        + _OUTPUTS * _same(call.after, other.after)
    )


def _same(these: Sequence[Value], those: Sequence[Value]) -> bool:
    return [value.digest for value in these] == [value.digest for value in those]


def aligned_nodes(reference: Recording, subject: Recording, calls: dict[Call, Call]) -> dict[int, list[int]]:
    """Return, by the index of each node of the reference that has any, the indices of its counterparts in the subject.

    The nodes of an operation correspond in the order in which they ran; leaves by their name, or by who sends to them. Where
    the forwards were not recorded, nodes of one name correspond in the order in which they were made, if there are as many.
    """
    found: dict[int, list[int]] = {}
    theirs: dict[Call | str, list[int]] = defaultdict(list)
    for node in subject:
        key = node.leaf if node.kind == "leaf" else calls.get(node.call) if node.call else None
        if key is not None:
            theirs[key].append(node.index)
    for node in reference:
        own = node.leaf if node.kind == "leaf" else node.call
        if own is not None and own in theirs:
            found[node.index] = theirs[own]
    if not calls:
        found |= _by_order(reference.nodes, subject.nodes)
    found = _paired(reference, found)
    found |= _same_leaves(reference, subject, found)
    found |= _sent_to(reference, subject, found)
    return found | _equal_leaves(reference, subject, found)


def _paired(reference: Recording, found: dict[int, list[int]]) -> dict[int, list[int]]:
    """Give each of several runs of one node its own counterpart, if there are as many."""
    runs: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, others in found.items():
        if reference.nodes[index].kind != "leaf":
            runs[tuple(others)].append(index)
    paired = dict(found)
    for counterparts, indices in runs.items():
        if 1 < len(indices) == len(counterparts):
            paired |= {index: [other] for index, other in zip(indices, counterparts, strict=True)}
    return paired


def _by_order(reference: Sequence[Node], subject: Sequence[Node]) -> dict[int, list[int]]:
    ours, theirs = _by_name(reference), _by_name(subject)
    return {
        node.index: [other.index]
        for name, nodes in ours.items()
        if len(nodes) == len(theirs.get(name, ()))
        for node, other in zip(nodes, theirs[name], strict=True)
    }


def _by_name(nodes: Sequence[Node]) -> dict[str, list[Node]]:
    found: dict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        if node.kind != "leaf":
            found[node.name].append(node)
    return {name: sorted(same, key=lambda node: node.made) for name, same in found.items()}


def _same_leaves(reference: Recording, subject: Recording, found: dict[int, list[int]]) -> dict[int, list[int]]:
    """Return the leaves that are one tensor in both."""
    theirs: dict[int, list[int]] = defaultdict(list)
    for index, node in _leaves_left(subject, {index for others in found.values() for index in others}).items():
        theirs[id(node.grad_fn.variable)].append(index)
    ours = _leaves_left(reference, set(found))
    return {i: others for i, node in ours.items() if (others := theirs.get(id(node.grad_fn.variable)))}


def _equal_leaves(reference: Recording, subject: Recording, found: dict[int, list[int]]) -> dict[int, list[int]]:
    """Return the leaves that have the same value, of those whose counterpart is not known."""
    left = _leaves_left(subject, {index for others in found.values() for index in others})
    pairs: dict[int, list[int]] = {}
    for index, node in _leaves_left(reference, set(found)).items():
        other = next((i for i, o in left.items() if equal(node.grad_fn.variable, o.grad_fn.variable)), None)
        if other is not None:
            del left[other]
            pairs[index] = [other]
    return pairs


def _sent_to(reference: Recording, subject: Recording, found: dict[int, list[int]]) -> dict[int, list[int]]:
    """Return the leaves that a node sends to whose counterpart sends to one too, of those whose counterpart is not known."""
    ours = _leaves_left(reference, set(found))
    theirs = _leaves_left(subject, {index for others in found.values() for index in others})
    pairs: dict[int, list[int]] = {}
    for node in reference:
        for other in found.get(node.index, ()):
            for to, there in zip(node.leads_to, subject.nodes[other].leads_to, strict=False):
                if to in ours and there in theirs:
                    pairs.setdefault(to, []).append(there)
    return {to: list(dict.fromkeys(there)) for to, there in pairs.items()}


def _leaves_left(recording: Recording, known: set[int]) -> dict[int, Node]:
    return {node.index: node for node in recording if node.kind == "leaf" and node.index not in known}
