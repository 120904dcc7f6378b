"""What one forward and backward left behind, as things that can be compared one by one."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from gradcheck_plus.case import Scalar
from gradcheck_plus.mismatch import Role

#: What about it is compared, for the things that are not tensors.
Aspect = Literal["structure", "requires-grad", "alias", "version", "state", "firings"]


@dataclass(frozen=True)
class Raised:
    """An exception and when it came."""

    phase: Literal["forward", "backward"]
    type: str
    message: str


@dataclass
class Record:
    """Everything one execution left behind.

    Attributes:
        tensors: by role and leaf path; None where there is no tensor (a gradient that never came).
        facts: by role, leaf path and aspect; compared for equality.
        raised: the exception that ended the execution, if one did.
        warnings: what was warned of; not judged.
        before: the gradients that were there before the execution, by role and leaf path.
        places: for each output leaf, its segment and its path there.
    """

    tensors: dict[tuple[Role, str], torch.Tensor | None] = field(default_factory=dict)
    facts: dict[tuple[Role, str, Aspect], Any] = field(default_factory=dict)
    raised: Raised | None = None
    warnings: list[str] = field(default_factory=list)
    before: dict[tuple[Role, str], torch.Tensor] = field(default_factory=dict)
    places: dict[str, tuple[int, str]] = field(default_factory=dict)

    @property
    def varies(self) -> bool:
        """Did torch warn that an operation may come out otherwise each time, as some on CUDA that add atomically?"""
        return any("deterministic" in warning for warning in self.warnings)

    def gradients(self) -> Iterator[torch.Tensor]:
        """Yield the gradients that are there."""
        for (role, _), tensor in self.tensors.items():
            if tensor is not None and role in ("primal", "parameter"):
                yield tensor

    @property
    def vacuous(self) -> bool:
        """Did no gradient come that is not zero?"""
        return not any(
            bool(tensor.count_nonzero()) if key not in self.before else not torch.equal(tensor, self.before[key])
            for key, tensor in self.tensors.items()
            if tensor is not None and key[0] in ("primal", "parameter")
        )

    def keep_output(self, path: str, segment: int, output: Any, inputs: dict[int, str]) -> dict[str, Any]:
        """Take in an output as it is now; return its leaves by path. `inputs` names the storages that it may share."""
        structure, leaves = flatten(output)
        self.facts["output", path, "structure"] = structure
        for where, leaf in leaves:
            if isinstance(leaf, torch.Tensor):
                self.places[path + where] = (segment, where)
                self.tensors["output", path + where] = leaf.detach().clone()
                self.facts["output", path + where, "requires-grad"] = leaf.requires_grad
                self.facts["output", path + where, "alias"] = inputs.get(storage(leaf), "nothing")
        return dict(leaves)


def storage(tensor: torch.Tensor) -> int:
    """Return the address of a tensor's memory, 0 if it has none."""
    return tensor.untyped_storage().data_ptr()


def flatten(value: Any, path: str = "") -> tuple[str, list[tuple[str, Any]]]:
    """Return the structure of a value as text, and its leaves with their paths as code.

    Dataclasses are containers here, which torch's own pytree does not know them to be. The order of a dict is no part of
    its structure.

    Example:
        >>> flatten({"a": (1, None)}, "out")
        ("{'a': (1, None)}", [("out['a'][0]", 1), ("out['a'][1]", None)])
    """
    if isinstance(value, torch.Tensor):
        return "tensor", [(path, value)]
    if isinstance(value, dict):
        parts = [(f"{key!r}: ", *flatten(child, f"{path}[{key!r}]")) for key, child in sorted(value.items(), key=_by_key)]
        brackets = "{}"
    elif isinstance(value, tuple) and hasattr(value, "_fields"):
        parts = [(f"{name}=", *flatten(getattr(value, name), f"{path}.{name}")) for name in value._fields]
        brackets = f"{type(value).__name__}()"
    elif isinstance(value, list | tuple):
        parts = [("", *flatten(child, f"{path}[{i}]")) for i, child in enumerate(value)]
        brackets = ("[]" if isinstance(value, list) else "()") if type(value) in (list, tuple) else f"{type(value).__name__}()"
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        parts = [(f"{f.name}=", *flatten(getattr(value, f.name), f"{path}.{f.name}")) for f in dataclasses.fields(value)]
        brackets = f"{type(value).__name__}()"
    else:
        return repr(value) if isinstance(value, Scalar) else type(value).__name__, [(path, value)]
    inner = ", ".join(prefix + text for prefix, text, _ in parts)
    return f"{brackets[:-1]}{inner}{brackets[-1]}", [leaf for _, _, leaves in parts for leaf in leaves]


def _by_key(item: tuple[Any, Any]) -> str:
    return repr(item[0])
