"""The planted faults of functions, by torch's gradcheck in both modes, with gradgradcheck, and by ours: one table.

    python benchmarks/gradcheck.py [--max-examples N] [--seed S]

Each is given what a user has: the ordinary sample call of the fault in `gradcheck_plus.zoo`, in float64.
Torch's are called as they are by default. ``found`` counts faults, ``alarms`` their correct twins. ``equal coverage`` is
the time that `gp.gradcheck` takes next to torch's slow mode for one full Jacobian.
"""

import argparse
import time
import warnings

import torch
from torch.autograd import gradcheck, gradgradcheck

import gradcheck_plus as gp
from gradcheck_plus.execute.targets import load
from gradcheck_plus.zoo import ZOO

REFERENCED = ("values", "nondifferentiable", "autocast")


def torch_says(call, inputs, *, second, fast):
    """Does torch's own check fail?"""
    made = [t.detach().to(torch.complex128 if t.is_complex() else torch.float64).requires_grad_() for t in inputs]
    try:
        gradcheck(call, made, fast_mode=fast)
        if second:
            gradgradcheck(call, made, fast_mode=fast)
    except Exception:
        return True
    return False


def ours_says(entry, op, options):
    """Does ours?"""
    reference = entry.twin if entry.check in REFERENCED else None
    settings = gp.Settings(max_examples=options.max_examples, seed=options.seed)
    return gp.check_function(op, inputs=entry.inputs, reference=reference, settings=settings).verdict == "fault"


def drop_in_says(entry, op):
    """Does the drop-in?"""
    made = [t.detach().to(torch.complex128 if t.is_complex() else torch.float64).requires_grad_() for t in entry.inputs()]
    try:
        gp.gradcheck(op, made)
    except Exception:
        return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--max-examples", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    # What needs a GPU, or to be asked for, is nobody's to find here.
    entries = [e for e in ZOO.values() if e.kind == "function" and e.check not in ("devices", "compile")]
    ways = {
        "torch gradcheck, slow": lambda e, op: torch_says(op, e.inputs(), second=False, fast=False),
        "torch gradcheck, fast": lambda e, op: torch_says(op, e.inputs(), second=False, fast=True),
        "and gradgradcheck, slow": lambda e, op: torch_says(op, e.inputs(), second=True, fast=False),
        "and gradgradcheck, fast": lambda e, op: torch_says(op, e.inputs(), second=True, fast=True),
        "gp.gradcheck": drop_in_says,
        "gp.check_function": lambda e, op: ours_says(e, op, options),
    }
    print(f"{'':26s} {'found':>6s} {'alarms':>7s} {'seconds':>8s}   of {len(entries)}")
    for name, says in ways.items():
        begun = time.monotonic()
        missed = [e.check for e in entries if not says(e, getattr(load(e.target), "apply", load(e.target)))]
        alarms = [e.check for e in entries if says(e, load(e.twin_target))]
        seconds = time.monotonic() - begun
        said = ", ".join(missed) or "none"
        print(f"{name:26s} {len(entries) - len(missed):6d} {len(alarms):7d} {seconds:8.1f}   missed: {said}")
        if alarms:
            print(f"{'':26s} false alarms: {', '.join(alarms)}")
    equal_coverage()


def equal_coverage():
    """Time one full Jacobian by both."""
    x = torch.randn(24, 24, dtype=torch.float64, requires_grad=True)
    for name, check in (("torch gradcheck, slow", gradcheck), ("gp.gradcheck", gp.gradcheck)):
        check(lambda t: t @ t, (x[:2, :2].detach().requires_grad_(),))
        begun = time.process_time()
        check(lambda t: t @ t, (x,))
        print(f"equal coverage, x @ x of 24 by 24: {name}: {time.process_time() - begun:.2f} s")


if __name__ == "__main__":
    main()
