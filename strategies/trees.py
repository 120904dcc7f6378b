"""Trees: how values are nested in containers."""

from collections.abc import Sequence

from gradcheck_plus.case import Container, Tree
from gradcheck_plus.case.trees import ContainerKind
from gradcheck_plus.strategies.chooser import Chooser

_FIELDS = ("first", "second", "third")
_DEEPEST = 2


def nested(c: Chooser, items: Sequence[Tree], kinds: Sequence[ContainerKind], level: int = 0) -> Container:
    """Draw containers around some trees, up to three deep; shrinks towards one flat container of the first kind."""
    items = list(items)
    cut = c.mostly(0, range(1, len(items)), 60) if len(items) > 1 and level < _DEEPEST else 0
    if cut:
        items = [*items[:cut], nested(c, items[cut:], kinds, level + 1)]
    elif level == 0 and c.chance(30):
        items = [nested(c, items, kinds, 1)]
    fitting = [kind for kind in kinds if len(items) <= len(_FIELDS) or kind not in ("namedtuple", "dataclass")]
    return contained(c.pick(fitting or ["tuple"]), items)


def contained(kind: ContainerKind, items: Sequence[Tree]) -> Container:
    """Return a container of a kind."""
    if kind == "dict":
        return Container(kind, tuple(items), tuple("abcdefghijklmnopqrstuvwxyz"[: len(items)]))
    if kind in ("namedtuple", "dataclass"):
        return Container(kind, tuple(items), _FIELDS[: len(items)])
    return Container(kind, tuple(items))


def container_kinds(c: Chooser, where: str) -> list[ContainerKind]:
    """Return the kinds of container that may be used for the inputs or the outputs, the aimed-at ones first."""
    candidates: tuple[ContainerKind, ...] = ("dataclass", "namedtuple")
    aimed = [kind for kind in candidates if c.flag(f"{kind}-{where}")]
    return aimed or ["dict", "list", "tuple"]
