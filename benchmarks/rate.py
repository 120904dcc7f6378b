"""Cases per second on one core against torch's non-reentrant checkpoint, and where the time of a case goes.

    python benchmarks/rate.py [CASES] [SEED] [OPERATIONS]

`OPERATIONS` is a file with the names of the operations to draw from; the whole catalogue by default. Imports and the first
block are apart. Times are processor time, so that another process on the machine counts for nothing.
"""

import gc
import sys
import time
from pathlib import Path

from gradcheck_plus.campaign.block import generated
from gradcheck_plus.campaign.plan import Block, Search
from gradcheck_plus.campaign.runner import LocalRunner, single_thread
from gradcheck_plus.execute import execute, reference
from gradcheck_plus.execute.build import Compiled
from gradcheck_plus.settings import BLOCK, Settings
from gradcheck_plus.traits import traits

TARGET = "gradcheck_plus.subjects.torch_checkpoint:non_reentrant"


def clock(function, cases):
    """Milliseconds a case."""
    start = time.process_time()
    for case in cases:
        function(case)
    return (time.process_time() - start) / len(cases) * 1e3


def main(count=1000, seed=1, file=""):
    count, seed = int(count), int(seed)
    names = tuple(Path(file).read_text(encoding="utf-8").split()) if file else None
    settings = Settings(max_examples=count, seed=seed, operations=names)
    runner = LocalRunner(Search(kind="checkpoint", settings=settings, target=TARGET))
    runner.block(Block(0, seed + 1, BLOCK))
    gc.collect()
    gc.freeze()  # as the worker process does: what imports made is not looked at again

    start = time.process_time()
    for number, examples in enumerate(runner.settings.blocks):
        runner.block(Block(number, seed, examples))
    whole = (time.process_time() - start) / count * 1e3
    print(f"{1e3 / whole:.0f} cases a second on one core ({whole:.2f} ms a case, {count} cases, seed {seed})")

    cases = []

    def keep(case):
        cases.append(case)

    start = time.process_time()
    for number, examples in enumerate(runner.settings.blocks):
        generated(Block(number, seed, examples), runner.strategy, keep)
    drawing = (time.process_time() - start) / count * 1e3
    with single_thread():
        parts = {
            "draw the case (Hypothesis)": drawing,
            "compute its traits": clock(traits, cases),
            "print and compile its source": clock(lambda case: Compiled(case, device="cpu", variant="plain"), cases),
            "plain autograd (build, run, record)": clock(lambda case: execute(case, reference("checkpoint")), cases),
            "checkpoint (build, run, record)": clock(lambda case: execute(case, runner.subject), cases),
        }
    parts["plain autograd (build, run, record)"] -= parts["print and compile its source"]
    for name, milliseconds in parts.items():
        print(f"  {name:38s} {milliseconds:5.2f} ms  {milliseconds / whole:4.0%}")
    print(f"  {'the rest: judging, repetitions, truths':38s} {whole - sum(parts.values()):5.2f} ms")


if __name__ == "__main__":
    main(*sys.argv[1:4])
