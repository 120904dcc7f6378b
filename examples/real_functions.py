"""Functions of packages that others wrote: what the check says of each.

    pip install entmax timm pytorch-revgrad
    python examples/real_functions.py [--max-examples N]

What is not installed is left out, with the reason. The outcome is in docs/findings.md.
"""

import argparse
import importlib
import importlib.util
from pathlib import Path

import torch

import gradcheck_plus as gp


def rows():
    return [torch.randn(3, 5)]


def vector():
    return [torch.randn(6)]


def softplus_mish(x):
    return x * torch.nn.functional.softplus(x).tanh()


def entmax():
    """Of entmax 1.3: sparse alternatives to softmax, with the Jacobian of the support."""
    from entmax.activations import Entmax15Function, SparsemaxFunction
    from entmax.root_finding import EntmaxBisectFunction, SparsemaxBisectFunction

    yield "SparsemaxFunction", lambda x: SparsemaxFunction.apply(x, -1, None), rows, None
    yield "Entmax15Function", lambda x: Entmax15Function.apply(x, -1, None), rows, None
    yield "SparsemaxBisectFunction", lambda x: SparsemaxBisectFunction.apply(x, -1, 50, True), rows, None
    yield "EntmaxBisectFunction", lambda x: EntmaxBisectFunction.apply(x, 1.5, -1, 50, True), rows, None


def timm():
    """Of timm 1.0: activations that save memory. The module is loaded alone, since the package needs torchvision."""
    found = importlib.util.find_spec("timm")
    if found is None or found.origin is None:
        raise ModuleNotFoundError("No module named 'timm'", name="timm")
    file = Path(found.origin).parent / "layers" / "activations_me.py"
    spec = importlib.util.spec_from_file_location("activations_me", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    functional = torch.nn.functional
    yield "SwishAutoFn", module.SwishAutoFn, vector, functional.silu
    yield "MishAutoFn", module.MishAutoFn, vector, softplus_mish
    yield "HardSigmoidAutoFn", module.HardSigmoidAutoFn, vector, functional.hardsigmoid
    yield "HardSwishAutoFn", module.HardSwishAutoFn, vector, functional.hardswish
    yield "HardMishAutoFn", module.HardMishAutoFn, vector, None


def revgrad():
    """Of pytorch-revgrad 0.2, which reverses gradients on purpose, which is what the check must say."""
    module = importlib.import_module("pytorch_revgrad.functional")
    yield "RevGrad", lambda x: module.revgrad(x, torch.tensor(1.0)), vector, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--max-examples", type=int, default=300)
    options = parser.parse_args()
    torch.set_num_threads(1)
    for package in (entmax, timm, revgrad):
        print(package.__doc__)
        try:
            found = list(package())
        except ModuleNotFoundError as error:
            print(f"  left out: {error}")
            continue
        for name, op, inputs, reference in found:
            for against in {None, reference}:
                settings = gp.Settings(max_examples=options.max_examples, keep_going=True)
                result = gp.check_function(op, inputs=inputs, reference=against, settings=settings)
                how = "without a reference" if against is None else f"against {against.__name__}"
                print(f"  {name}, {how}: {result.verdict}, {result.cases.judged} cases judged")
                for fault in result.faults:
                    print(f"    [{fault.check}] {fault.message}")


if __name__ == "__main__":
    main()
