"""What recording a backward costs, as a multiple of the bare forward and backward.

    python benchmarks/graph.py

Printed for each model: the time of the bare run, and the ratios of `record_backward` alone, of `record_backward` with values,
and of `record_forward` and `record_backward` together. Each is the median of some runs, in one thread.
"""

import statistics
import time

import torch
from torch import nn

import gradcheck_plus as gp


def bare(model, x):
    model(x).sum().backward()


def recorded(model, x):
    gp.record_backward(model(x).sum(), names=model)


def with_values(model, x):
    gp.record_backward(model(x).sum(), names=model, values=True)


def with_forward(model, x):
    with gp.record_forward() as forward:
        loss = model(x).sum()
    gp.record_backward(loss, names=model, forward=forward)


def median(run, model, x, repetitions):
    times = []
    for _ in range(repetitions):
        model.zero_grad()
        start = time.perf_counter()
        run(model, x)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def models():
    """Yield a name, a module, an input and how often to run it."""
    torch.manual_seed(0)
    yield "two linear layers", nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)), torch.randn(4, 8), 200
    yield "a small transformer layer", nn.TransformerEncoderLayer(16, 2, 32), torch.randn(5, 2, 16), 100
    yield "30 linear layers", nn.Sequential(*(nn.Linear(16, 16) for _ in range(30))), torch.randn(4, 16), 100
    layer = nn.TransformerEncoderLayer(512, 8, 2048)
    yield "a run of a second", nn.TransformerEncoder(layer, 8, enable_nested_tensor=False), torch.randn(128, 4, 512), 5


def main():
    torch.set_num_threads(1)
    print(f"{'model':28}{'bare':>10}{'recorded':>10}{'values':>10}{'forward':>10}")
    for name, model, x, repetitions in models():
        bare(model, x)
        base = median(bare, model, x, repetitions)
        ratios = [median(run, model, x, repetitions) / base for run in (recorded, with_values, with_forward)]
        print(f"{name:28}{base * 1e3:7.1f} ms" + "".join(f"{ratio:9.2f}x" for ratio in ratios))


if __name__ == "__main__":
    main()
