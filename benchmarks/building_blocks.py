"""Time the pieces that the perceptron's trainer is made of: why it is written as it is.

The results are in ``docs/explanation/performance.md``.

    python benchmarks/building_blocks.py --threads 2

Prints one line per piece, the best of several repetitions in milliseconds. Sizes are those of MNIST pairs: minibatches
of 9,000 images of 720 used pixels, 300 hidden units.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import torch

ROWS, PIXELS = 9000, 720


def milliseconds(work: Callable[[], object], repetitions: int = 3, calls: int = 10) -> float:
    """Return the time of one call."""
    work()
    best = float("inf")
    for _ in range(repetitions):
        start = time.perf_counter()
        for _ in range(calls):
            work()
        best = min(best, (time.perf_counter() - start) / calls)
    return 1000 * best


def products() -> None:
    """Time the five large products of a step for several widths of the hidden layers."""
    for dtype in (torch.float32, torch.bfloat16):
        for width in (300, 304, 320):
            x, h, g = (torch.randn(ROWS, columns).to(dtype) for columns in (PIXELS, width, width))
            w1, w2 = torch.randn(PIXELS, width).to(dtype), torch.randn(width, width).to(dtype)
            pairs = [(x, w1), (h, w2), (x.t(), g), (h.t(), g), (g, w2.t())]
            outs = [torch.empty(a.shape[0], b.shape[1], dtype=dtype) for a, b in pairs]
            total = sum(
                milliseconds(lambda a=a, b=b, o=o: torch.mm(a, b, out=o)) for (a, b), o in zip(pairs, outs, strict=True)
            )
            flop = sum(2 * a.shape[0] * a.shape[1] * b.shape[1] for a, b in pairs)
            print(f"step's products, {str(dtype)[6:]}, width {width}: {total:.1f} ms, {flop / total / 1e6:.0f} GFLOP/s")


def passes() -> None:
    """Time the passes over a layer's activations, bf16."""
    h, g, bias = torch.randn(ROWS, 304).bfloat16(), torch.randn(ROWS, 304).bfloat16(), torch.randn(1, 304).bfloat16()
    x, w, out = torch.randn(ROWS, PIXELS).bfloat16(), torch.randn(PIXELS, 304).bfloat16(), torch.empty_like(h)
    backward = torch.ops.aten.threshold_backward
    for name, work in {
        "product": lambda: torch.mm(x, w, out=out),
        "product with a bias broadcast into the result": lambda: torch.addmm(bias, x, w, out=out),
        "ReLU in place": lambda: out.relu_(),
        "gradient of ReLU in place": lambda: backward.grad_input(g, h, 0, grad_input=g),
        "gradient of ReLU, new tensor": lambda: backward(g, h, 0),
        "bias gradient, sum in float32": lambda: g.sum(dim=0, dtype=torch.float32),
        "bias gradient, row of a product": lambda: torch.mm(torch.ones(1, ROWS, dtype=torch.bfloat16), g),
    }.items():
        print(f"{name}: {milliseconds(work):.2f} ms")


def gathers() -> None:
    """Time taking a minibatch out of the images."""
    images, rows = torch.zeros(60_000, PIXELS, dtype=torch.uint8), torch.randint(60_000, (ROWS,))
    print(f"images[rows]: {milliseconds(lambda: images[rows]):.2f} ms")
    print(f"images.index_select(0, rows): {milliseconds(lambda: images.index_select(0, rows)):.2f} ms")


def memory() -> None:
    """Time filling the activations of three runs, two layers of 16 MB in bf16."""

    def fill_new() -> None:
        layers = [torch.empty(3, ROWS, 304, dtype=torch.bfloat16).fill_(0) for _ in range(2)]
        layers.clear()

    kept = [torch.empty(3, ROWS, 304, dtype=torch.bfloat16) for _ in range(2)]
    print(f"two layers' activations in new memory: {milliseconds(fill_new):.2f} ms")
    print(f"two layers' activations in kept memory: {milliseconds(lambda: [t.fill_(0) for t in kept]):.2f} ms")


def main() -> None:
    """Time everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    memory()
    products()
    passes()
    gathers()


if __name__ == "__main__":
    main()
