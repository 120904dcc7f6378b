"""`gradcheck` with torch's signature: at the given inputs only, with kinks left out, dicts, module parameters, and a cause."""

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.autograd.gradcheck import GradcheckError as TorchError

from gradcheck_plus.case import Call
from gradcheck_plus.errors import GradientMismatch, InvalidArgument
from gradcheck_plus.functions.checks import CHECKS, Refused, Scene
from gradcheck_plus.functions.judging import Tested, alone
from gradcheck_plus.functions.numeric import Entry, jacobian
from gradcheck_plus.functions.wording import number
from gradcheck_plus.mismatch import Mismatch

#: What torch makes, as far as there is an option for it, by our checks that make it.
_ALWAYS = ("linearity", "inputs-unmodified", "cotangent-layouts")


class GradcheckError(GradientMismatch, TorchError):
    """A gradient is wrong at the given inputs. Whoever catches torch.autograd.gradcheck.GradcheckError catches it too."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Any,
    *,
    eps: float = 1e-6,
    atol: float = 1e-5,
    rtol: float = 1e-3,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
    check_undefined_grad: bool = True,
    check_grad_dtypes: bool = False,
    check_batched_grad: bool = False,
    check_batched_forward_grad: bool = False,
    check_forward_ad: bool = False,
    check_backward_ad: bool = True,
    fast_mode: bool = False,
    masked: bool | None = None,
) -> bool:
    """Check gradients at the given inputs by central differences: `torch.autograd.gradcheck`, with a cause where it fails.

    Every option is torch's own, with torch's default. What is different: derivatives at kinks are left out and not compared;
    inputs
    may be nested in lists, tuples and dicts, or be a dict of keyword arguments; the parameters of a module are checked too;
    inputs in
    float32 are checked in float64 if `func` takes that; the whole Jacobian is compared in `fast_mode` as well.
    `check_batched_grad`,
    `check_batched_forward_grad` and `masked` are handed to torch's own. It looks at these inputs only: `check_function`
    varies them.

    Args:
        func: the function.
        inputs: its arguments, at least one of which requires grad; or, of a module, a parameter does.
        eps: the step of the differences.
        atol: how far a derivative may be off, absolutely.
        rtol: how far a derivative may be off, relatively.
        raise_exception: raise where a gradient is wrong; otherwise return False.
        nondet_tol: how far two runs of the backward may be apart.
        check_undefined_grad: outputs that nobody uses must count like zeros.
        check_grad_dtypes: gradients must have the dtype of their inputs, as they are returned by the backward.
        check_batched_grad: check the backward under vmap.
        check_batched_forward_grad: check forward mode under vmap.
        check_forward_ad: forward mode must be adjoint to the backward.
        check_backward_ad: check the backward.
        fast_mode: accepted; the whole Jacobian is compared all the same.
        masked: for sparse inputs.

    Returns:
        True if nothing is wrong; False if something is and `raise_exception` is false.

    Raises:
        GradcheckError: a gradient is wrong.
        InvalidArgument: no input requires grad, or `func` refuses the inputs. It is a ValueError, as torch's own is.

    Example:
        >>> import torch, gradcheck_plus as gp
        >>> gp.gradcheck(torch.relu, torch.tensor([-1.0, 0.0, 2.0], dtype=torch.float64, requires_grad=True))
        True
    """
    given = inputs if isinstance(inputs, tuple | list | dict) else (inputs,)
    own = {"check_batched_grad": check_batched_grad, "check_batched_forward_grad": check_batched_forward_grad}
    theirs = any(own.values()) or masked is not None or _sparse(given)
    if theirs and not torch.autograd.gradcheck(
        func, inputs, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
        check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, check_forward_ad=check_forward_ad,
        check_backward_ad=check_backward_ad, fast_mode=fast_mode, masked=masked, **own,
    ):  # fmt: skip
        return False
    if _sparse(given):
        return True
    checks = [*(_ALWAYS if check_backward_ad else ()), *(["repeatability"] if check_backward_ad and not nondet_tol else [])]
    checks += ["missing-cotangents"] if check_undefined_grad and check_backward_ad else []
    checks += ["returned-metadata"] if check_grad_dtypes else []
    checks += ["adjoint"] if check_forward_ad else []
    tested = Tested(func, None, given)
    _refuse_frozen(tested)
    with alone():
        found = next(_wrong(tested, checks, eps, atol, rtol, backward=check_backward_ad, nondet=nondet_tol), None)
    if found is not None and raise_exception:
        raise GradcheckError(found.message)
    return found is None


def _wrong(
    tested: Tested, checks: list[str], eps: float, atol: float, rtol: float, *, backward: bool, nondet: float
) -> Iterator[Mismatch]:
    for name in checks:
        try:
            yield from CHECKS[name].run(tested.scene(Call(name)))
        except Refused:
            continue
    scene = tested.scene(Call("jacobian"))
    if backward:
        yield from _jacobian(scene, eps, atol, rtol)
        yield from _repeated(scene, nondet)


def _jacobian(scene: Scene, eps: float, atol: float, rtol: float) -> Iterator[Mismatch]:
    if not scene.double:
        raise InvalidArgument(
            "`func` computes in less than float64, where differences are noise. Write one that takes float64."
        )
    entries, _, count = jacobian(scene.point, scene.op, eps=eps, most=None)
    wrong = [e for e in entries if not abs(e[4] - e[3]) <= atol + rtol * abs(e[3])]
    for entry in wrong[:1]:
        yield scene.fault("value", scene.names[entry[0]], f"{_said(scene, entry)}; {len(wrong)} of {count} entries are wrong")


def _said(scene: Scene, entry: Entry) -> str:
    slot, index, row, expected, got = entry
    name = f"`{scene.names[slot]}`" + (f" at {index}" if index else "")
    return (
        f"derivative of output element {row} by {name} is wrong: got {number(got)}, expected {number(expected)} by differences"
    )


def _repeated(scene: Scene, tolerance: float) -> Iterator[Mismatch]:
    """Compare two runs with a tolerance; without one, a check of ours does."""
    if not tolerance:
        return
    from gradcheck_plus.functions.support import pulled

    first, second = (pulled(scene.op, scene.point.call, scene.point.leaves) for _ in range(2))
    for name, a, b in zip(scene.names, first, second, strict=True):
        if a is not None and b is not None and a.numel() and float((a - b).abs().max()) > tolerance:
            yield scene.fault(
                "not-repeatable", name, f"gradient of `{name}` differs by more than {tolerance:g} between two runs"
            )


def _sparse(inputs: Any) -> bool:
    return isinstance(inputs, tuple | list) and any(isinstance(t, torch.Tensor) and t.layout != torch.strided for t in inputs)


def _refuse_frozen(tested: Tested) -> None:
    if not any(a.grad for a in tested.sample(0).arguments):
        raise InvalidArgument("`inputs`: none of them requires grad, so there is nothing to check. Set requires_grad on one.")
