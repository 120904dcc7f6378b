"""Is the place named at which a planted fault parts from plain autograd? A table over the zoo, and over files of yours.

    python benchmarks/divergence.py [--seed SEED] [FILE ...]

Each fault of the zoo is searched for, shrunk, and its first divergence held against what is planted there: the node or
statement whose gradient is wrong, or that the recomputed forward differs, and in which value. Faults that leave every
gradient right (flags, states, exceptions) have no such place and are listed, not counted.

A FILE defines `checkpoint`, `stage_backward`, or a pair `op` and `reference` with `SAMPLE_INPUTS`; of a pair, the Function of
the file that `op` calls must be named. Other files are listed, not counted.
"""

import argparse
import importlib.util
import re
from pathlib import Path

import torch
from rich.console import Console
from rich.markup import escape
from rich.table import Table

import gradcheck_plus as gp
from gradcheck_plus.zoo import ZOO

OWN = "_RecomputedBackward"  # the Function that the zoo's checkpoints are made of
ARRIVING = "incoming-differs|accumulation-differs|gradient-missing|rule-differs"

#: What must be said of each fault: its kind, and the node or the operation, as regular expressions.
RECOMPUTED = {
    "rng-not-restored": "bernoulli|rand|dropout",
    "autocast-lost": "_to_copy",
    "autocast-dtype-assumed": "_to_copy",
    "eval-during-recompute": "",
    "containers-by-reference": "",
    "saved-in-float32": "",
    "noise-restored-once": "",
    "noise-of-the-latest-call": "",
    "noise-kept-on-module": "",
    "autocast-lost-the-second-time": "",
    "surroundings-of-bare-tensors": "",
    "nested-saved-in-float32": "",
    "sequential-from-first-input": "",
}
PLACED = {
    "parameter-grad-assigned": ("accumulation-differs", ""),
    "first-gradients-remembered": ("incoming-differs", OWN),
    "cotangent-read-flat": ("incoming-differs", OWN),
    "frozen-inputs-drop-parameters": ("gradient-missing", ""),
    "only-first-input": ("incoming-differs", OWN),
    "keywords-detached": ("gradient-missing", ""),
    "nested-inputs-detached": ("gradient-missing|incoming-differs", ""),
    "duplicate-input-doubled": ("incoming-differs", OWN),
    "flags-shifted": (ARRIVING, ""),
    "scalars-taken-for-numbers": ("gradient-missing|incoming-differs", ""),
    "nothing-shifts-the-rest": (ARRIVING, ""),
    "missing-becomes-ones": (ARRIVING, ""),
    "innermost-wrap-only": ("gradient-missing|incoming-differs", ""),
    "inputs-not-cut-off": ("accumulation-differs", ""),
    "nested-outputs-detached": ("gradient-missing|incoming-differs", ""),
    "dataclass-outputs-detached": ("gradient-missing|incoming-differs", ""),
    "grad-mode-left-off": ("gradient-missing", ""),
    "kept-by-memory": ("rule-differs", ""),
    "joints-counted-twice": ("accumulation-differs", ""),
    "results-summed": ("incoming-differs|accumulation-differs", ""),
    "parameters-beside-inputs-lost": ("gradient-missing", ""),
    "first-output-only": ("gradient-missing", ""),
    "dict-skipped": ("gradient-missing", ""),
    "first-key-only": ("gradient-missing|accumulation-differs", ""),
    "dict-matched-by-order": ("gradient-missing|incoming-differs|raises", ""),
    "duplicate-output-once": ("incoming-differs|accumulation-differs", ""),
    "scaled-by-outputs": ("incoming-differs", ""),
    "outputs-freed-early": ("rule-differs", ""),
    "weight-grad-assigned": ("accumulation-differs", ""),
    "weight-grads-never-taken": ("gradient-missing", ""),
    "one-backward-an-output": (ARRIVING, ""),
}


def check(kind, call, contract, name, seed):
    run = {"checkpoint": gp.check_checkpoint, "stage-backward": gp.check_stage_backward, "wrapper": gp.check_wrapper}.get(kind)
    run = run or (lambda pair, **options: gp.check_split_backward(*pair, **options))
    result = run(call, contract=contract, name=name, settings=gp.Settings(max_examples=1500, seed=seed))
    return result.faults[0].first_divergence if result.faults else None


def judged(name, found):
    """Is a fault of the zoo named as it is planted? None where there is no place to name."""
    kind, node = ("recompute-differs", RECOMPUTED[name]) if name in RECOMPUTED else PLACED.get(name, (None, None))
    if kind is None:
        return None
    return bool(found and re.fullmatch(kind, found.kind) and re.search(node, found.node) and found.source_line)


def zoo(seed):
    for planted in ZOO.values():
        if planted.kind in ("checkpoint", "stage-backward", "split-backward", "wrapper"):
            found = check(planted.kind, planted.faulty, planted.contract, planted.name, seed)
            yield planted.name, found, judged(planted.name, found)


def module_of(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def pair(module):
    """Compare an operation with its reference, each called once on the sample inputs."""
    weighted = getattr(module, "TRIGGER_LOSS", None)

    def run(function):
        torch.manual_seed(0)
        returned = weighted(function, module.SAMPLE_INPUTS()) if weighted else function(*module.SAMPLE_INPUTS())
        return None if weighted and isinstance(returned, tuple) else returned

    found = gp.first_divergence(lambda: run(module.reference), lambda: run(module.op))
    functions = [v for v in vars(module).values() if isinstance(v, type) and issubclass(v, torch.autograd.Function)]
    places = [f"{f.__name__}Backward" for f in functions]
    here = found and (found.node in places or module.__file__ in found.source)
    return found, bool(here)


def files(paths, seed):
    for path in paths:
        module = module_of(Path(path))
        if hasattr(module, "reference"):
            yield path.stem, *pair(module)
        else:
            kind = "checkpoint" if hasattr(module, "checkpoint") else "stage-backward"
            yield path.stem, check(kind, getattr(module, kind.replace("-", "_")), "", path.stem, seed), None


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("files", nargs="*", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(1)
    table = Table("fault", "named", "kind", "node", "line", box=None)
    counts = {True: 0, False: 0, None: 0}
    for rows in (zoo(options.seed), files(options.files, options.seed)):
        for name, found, right in rows:
            counts[right] += 1
            cells = (found.kind, found.node, found.source_line) if found else ("not found", "", "")
            table.add_row(name, {True: "yes", False: "NO", None: "-"}[right], *map(escape, cells))
    Console(width=180).print(table)
    print(f"{counts[True]} of {counts[True] + counts[False]} named; {counts[None]} have no such place")


if __name__ == "__main__":
    main()
