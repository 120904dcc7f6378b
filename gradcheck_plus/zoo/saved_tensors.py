"""Ways to save activation memory without a recompute: what autograd saves goes through a pair of hooks.

Compression and offloading are made like this. The correct one keeps each saved tensor as it is and checks, as autograd does,
that nobody has changed it since.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from typing_extensions import override

from gradcheck_plus.zoo.planted import Make


class SavedTensors:
    """Called as ``checkpoint(function, *args, **kwargs)``."""

    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        with saved_tensors_hooks(self.pack, self.unpack):
            return function(*args, **kwargs)

    def pack(self, tensor: Tensor) -> Any:
        """Return what is kept of a saved tensor: not itself, which would keep its own graph alive."""
        return tensor.detach(), tensor._version

    def unpack(self, packed: Any) -> Tensor:
        """Return the tensor again.

        Raises:
            RuntimeError: it was changed in place meanwhile.
        """
        tensor: Tensor
        tensor, version = packed
        if tensor._version != version:
            raise RuntimeError(f"a saved tensor was changed in place: its version is {tensor._version}, not {version}")
        return tensor


class ChangesUnnoticed(SavedTensors):
    """A saved tensor that was changed in place meanwhile is used as it is, where autograd would raise."""

    @override
    def unpack(self, packed: Any) -> Tensor:
        tensor: Tensor = packed[0]
        return tensor


class KeptByMemory(SavedTensors):
    """Saved tensors are kept by the memory that they lie in, and two views of one shape are taken for the same."""

    @override
    def __call__(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        self.kept: dict[Any, Any] = {}
        return super().__call__(function, *args, **kwargs)

    @override
    def pack(self, tensor: Tensor) -> Any:
        key = (tensor.untyped_storage().data_ptr(), tensor.shape, tensor.dtype)
        return self.kept.setdefault(key, super().pack(tensor))


#: The correct one, and the faults.
twin = SavedTensors()
changes_unnoticed = ChangesUnnoticed()
kept_by_memory = KeptByMemory()
plant = Make("checkpoint", twin, "strict").plant

plant(
    "changes-unnoticed", changes_unnoticed, trigger="parameter-changed", source="pytorch/pytorch#119590, pytorch/pytorch#113737"
)
plant("kept-by-memory", kept_by_memory, source="modelscope/ms-swift#10157, huggingface/trl#6241")
