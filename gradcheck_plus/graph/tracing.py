"""A callable, run and recorded: its forward, and its backward unless it runs one itself."""

from collections.abc import Callable, Mapping
from typing import Any

import torch

from gradcheck_plus.compat import tensors
from gradcheck_plus.divergence import Divergence
from gradcheck_plus.errors import InvalidArgument
from gradcheck_plus.graph.diverging import Comparison
from gradcheck_plus.graph.recording import Recording
from gradcheck_plus.graph.running import RunRecording

Names = torch.nn.Module | Mapping[str, torch.Tensor] | None

#: What can be compared: a recording, or what is called to be recorded.
Run = Recording | RunRecording | Callable[[], Any]


def first_divergence(reference: Run, subject: Run, *, names: Names = None) -> Divergence | None:
    """Return where two ways of taking the same gradients part first, None where they do not.

    Operations are aligned by module, line, name and the values that went in and came out; nodes by the operations that made
    them. So a plain run, one under a reentrant checkpoint, whose graph is made in the backward, one under a non-reentrant
    one, and one cut into stages can be compared. What is told apart: a forward that differs, or one that is recomputed, and in
    which value; a gradient that never comes; one that something hands on which is not in the reference, such as a
    checkpoint's own Function; a node that returns another one for the same; and gradients that are added up otherwise, lost
    or doubled.

    Args:
        reference: a recording, of `record_run` or of `record_backward`; or a callable without arguments, which is recorded
            while it runs, from the random state that there is and with no ``.grad`` on any leaf with a name. One that returns
            outputs, or a loss, has their backward run, with fixed cotangents, unless it ran that itself.
        subject: likewise.
        names: the module whose parameters are to be named, or leaves by name; see `record_run`.

    Raises:
        InvalidArgument: a callable ran no backward, the two have nothing in common, or something else was given.
        Exception: what both of two callables raised. Where only one raises, that is where they part.

    Example:
        >>> import torch
        >>> import gradcheck_plus as gp
        >>> from torch.utils.checkpoint import checkpoint
        >>> layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Dropout(0.5))
        >>> x = torch.ones(2, 3, requires_grad=True)
        >>> def plain():
        ...     return layer(x)
        >>> def checkpointed():
        ...     return checkpoint(layer, x, use_reentrant=False)
        >>> gp.first_divergence(plain, checkpointed) is None
        True
        >>> def forgetful():
        ...     return checkpoint(layer, x, use_reentrant=False, preserve_rng_state=False)
        >>> print(gp.first_divergence(plain, forgetful).kind)
        recompute-differs
    """
    expected = _recorder(reference, names)
    got = _recorder(subject, names, like=expected if isinstance(expected, RunRecording) else None)
    runs = [one.recording if isinstance(one, RunRecording) else one for one in (expected, got)]
    comparison = Comparison(*runs)
    found = comparison.first()
    if found is None and runs[0].raised is not None:
        raise runs[0].raised
    if found is None and not comparison.nodes:
        raise InvalidArgument(
            f"`subject` has {len(runs[1])} nodes, and `reference` {len(runs[0])}, of which none correspond: they run no"
            " operation from the same line, in the same module or on the same values. Give two runs of one model."
        )
    return found


def recorded(run: Run, names: Names = None) -> Recording:
    """Return the recording of a run; a callable is run. See `first_divergence`.

    An exception of a callable, save an interrupt, ends the recording and is part of it.

    Raises:
        InvalidArgument: it ran no backward, or something else was given.
    """
    found = _recorder(run, names)
    return found.recording if isinstance(found, RunRecording) else found


def _recorder(run: Run, names: Names, like: RunRecording | None = None) -> Recording | RunRecording:
    if isinstance(run, Recording | RunRecording):
        return run
    if not callable(run):
        raise InvalidArgument(
            f"`run`={run!r} is neither a recording nor callable. Give what `gp.record_run` or `gp.record_backward` returned, or"
            " a callable without arguments that returns outputs or a loss."
        )
    recorder = RunRecording(names, fresh=True, like=like)
    try:
        with torch.random.fork_rng(range(torch.cuda.device_count())):
            _run(run, recorder)
        recorder.finish()
        return recorder
    finally:
        recorder.put_back()


def _run(run: Callable[[], Any], recorder: RunRecording) -> None:
    try:
        with recorder:
            returned = run()
            if outputs := [output for output in tensors(returned) if output.requires_grad and not recorder.ran(output)]:
                _backward(outputs, recorder)
            elif not recorder.backwards:
                _refuse(returned, run)
    except InvalidArgument:
        raise
    except Exception:
        assert recorder.raised is not None


def _refuse(returned: Any, run: Callable[[], Any]) -> None:
    name = getattr(run, "__qualname__", type(run).__name__)
    raise InvalidArgument(
        f"`{name}()` returned {type(returned).__name__} with no tensor that requires grad, and ran no backward. Return the"
        " outputs or the loss, or run the backward in it."
    )


def _backward(outputs: list[torch.Tensor], recorder: RunRecording) -> None:
    """Run the backward of what a callable returned, from fixed cotangents."""
    with recorder.paused():
        cotangents = [_cotangent(output) for output in outputs]
    torch.autograd.backward(outputs, cotangents)


def _cotangent(output: torch.Tensor) -> torch.Tensor:
    """Return 1 for a scalar, else some numbers that are all different, drawn from no generator."""
    if output.dim() == 0:
        return torch.ones_like(output)
    steps = torch.arange(output.numel(), dtype=torch.float64, device=output.device).reshape(output.shape)
    return (0.5 + torch.frac(steps * 0.6180339887)).to(output.dtype)
