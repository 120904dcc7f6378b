"""What a device needs besides tensors that live there: its generator, and the settings that decide which bits come out."""

import contextlib
import os
from collections.abc import Iterator

import torch

from gradcheck_plus.operations.device import WORKSPACE

#: Whose float32 may mean something less precise.
_PRECISIONS = (torch.backends.cuda.matmul, torch.backends.cudnn.conv, torch.backends.cudnn.rnn)  # type: ignore[attr-defined]


def kind(device: str) -> str:
    """Return the kind of a device, without its index."""
    return device.partition(":")[0]


def generator(device: str) -> torch.Generator:
    """Return the default generator of a device."""
    if device == "cpu":
        return torch.default_generator
    torch.cuda.init()  # there are no generators before
    index = torch.device(device).index
    made: torch.Generator = torch.cuda.default_generators[torch.cuda.current_device() if index is None else index]
    return made


def generators(device: str) -> dict[str, torch.Generator]:
    """Return every generator that a case on a device may draw from, by the code that reads its state."""
    found = {"torch.get_rng_state()": torch.default_generator}
    if device != "cpu":
        found[f"torch.cuda.get_rng_state({device!r})"] = generator(device)
    return found


def seed(device: str, number: int) -> None:
    """Put every generator that a case on a device may draw from into the same state."""
    for g in generators(device).values():
        g.manual_seed(number)


def wait(device: str) -> None:
    """Wait for what runs on a device, so that the error of a kernel is raised here and not in a later case."""
    if device != "cpu":
        torch.cuda.synchronize(device)


@contextlib.contextmanager
def repeatable(device: str, *, poison: bool, cudnn: bool = True) -> Iterator[None]:
    """Compute the same bits every time, as far as torch can; warn where it cannot.

    That is torch's deterministic mode. With `poison` it hands out memory filled with NaN; without, what it hands out next holds
    other numbers than NaN, which an earlier case may have left there. Without `cudnn`, CUDA does not use that library.
    """
    before = torch.get_deterministic_debug_mode()
    fill = torch.utils.deterministic.fill_uninitialized_memory  # type: ignore[attr-defined]
    # Not `use_deterministic_algorithms`, which tells the compiler too, and for that imports it: more than a second.
    torch.set_deterministic_debug_mode("warn")
    torch.utils.deterministic.fill_uninitialized_memory = poison  # type: ignore[attr-defined]
    if not poison:
        del [torch.full((size,), 7.0, device=device) for size in (*range(1, 49), 64, 96, 128) for _ in range(8)][:]
    try:
        with contextlib.nullcontext() if device == "cpu" else _cuda(cudnn=cudnn):
            yield
    finally:
        torch.set_deterministic_debug_mode(before)
        torch.utils.deterministic.fill_uninitialized_memory = fill  # type: ignore[attr-defined]


@contextlib.contextmanager
def _cuda(*, cudnn: bool) -> Iterator[None]:
    """Leave CUDA no choice of kernels by their speed, and no precision but that of the dtype.

    Attention warns once a process that its backward may come out otherwise; it has to say so in every case that it is in.
    """
    name, value = WORKSPACE
    workspace, warns = os.environ.get(name), torch.is_warn_always_enabled()
    library = torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark
    precisions = [p.fp32_precision for p in _PRECISIONS]
    os.environ.setdefault(name, value)
    torch.set_warn_always(True)
    torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark = cudnn and library[0], False
    _set_precisions(["ieee"] * len(_PRECISIONS))
    try:
        yield
    finally:
        _set_precisions(precisions)
        torch.backends.cudnn.enabled, torch.backends.cudnn.benchmark = library
        torch.set_warn_always(warns)
        if workspace is None:
            os.environ.pop(name, None)


def _set_precisions(precisions: list[str]) -> None:
    """Set what float32 means, by both of torch's interfaces: it raises where they say different things."""
    torch.backends.cuda.matmul.allow_tf32 = precisions[0] == "tf32"
    torch.backends.cudnn.allow_tf32 = "tf32" in precisions[1:]
    for place, precision in zip(_PRECISIONS, precisions, strict=True):
        place.fp32_precision = precision
