"""The losses in a plain loop: over ranks, beside `fit`, and `fit` and a stream from a memory map at any size.

    python benchmarks/loops.py ranks --images results/datasets/mnist.npz
    python benchmarks/loops.py fit --images results/datasets/mnist.npz
    python benchmarks/loops.py scale --images results/datasets/mnist.npz
    python benchmarks/loops.py stream --images results/datasets/mnist.npz
    python benchmarks/loops.py told --images results/datasets/mnist.npz --out docs/how-to/told.svg

Each prints lines of a Markdown table. Accuracies in % on the test images are means over the trials. Ranks are
simulated in one process: without the sum, each part of a minibatch corrects its own risk, and the mean of their
gradients is taken, as `DistributedDataParallel` does. Memory is the anonymous one of the process beyond what it had
before: pages of a file that is mapped can be dropped, and do not count.
"""

import argparse
import multiprocessing
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from shared import Labelled
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from mdpu.data import TupleData
from mdpu.estimator import MDPUClassifier
from mdpu.law import Law
from mdpu.losses import TupleLoss
from mdpu.monitoring import watch
from mdpu.streaming import Shuffle, TupleDataset

PRIOR, N = 0.5, 157 * 64
FASHION = ["T-shirt/top", "Pullover", "Shirt", "Bag", "Coat"], ["Dress", "Trouser", "Sandal", "Sneaker", "Ankle boot"]


def train(images, data, size, epochs, ranks=1, seed=0, batch_size=64, prior=PRIOR, each=lambda network: None):
    """Return the running mean of a perceptron's weights after a loop such as anybody writes."""
    torch.manual_seed(seed)
    layers = nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 1)
    network = nn.Sequential(nn.Flatten(), *layers)
    mean = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.98))
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, weight_decay=5e-4, fused=True)
    loss, loader = TupleLoss(Law.dominant(size), prior), TupleDataset(images, data, seed=seed).loader(batch_size)
    for _ in range(epochs):
        for batch in loader:
            tuples, unlabeled = batch.split(network(batch.instances.float() / 255).squeeze(1))
            optimizer.zero_grad()
            loss(*(scores.reshape(ranks, -1, size) for scores in (tuples, unlabeled))).mean().backward()
            optimizer.step()
            mean.update_parameters(network)
        each(mean)
    return mean


@torch.no_grad()
def accuracy(network, labelled):
    """Return the share of right answers on the test images, in %."""
    answers = network(torch.from_numpy(labelled.images.test_images).float() / 255).squeeze(1) > 0
    return 100 * float((answers.numpy() == (labelled.labels["test"] > 0)).mean())


def ranks(labelled, arguments):
    """Print accuracies of minibatches that are cut among ranks, each of which corrects its own part."""
    print("| M | the sum, any number of ranks | 4 | 16 | 32 |\n| ---: | ---: | ---: | ---: | ---: |")
    for size in (2, 3):
        reached = {count: [] for count in (1, 4, 16, 32)}
        for trial in range(arguments.trials):
            data = sample(labelled, size, N, trial)
            for count, values in reached.items():
                trained = train(labelled.images.train_images, data, size, arguments.epochs, count, trial)
                values.append(accuracy(trained, labelled))
        print(f"| {size} |", *(f"{np.mean(v):.1f} ± {np.std(v, ddof=1):.1f} |" for v in reached.values()), flush=True)


def fit(labelled, arguments):
    """Print accuracies and seconds of the plain loop and of `fit` with the same data and epochs."""
    print("| M | loop | `fit` | loop, s | `fit`, s |\n| ---: | ---: | ---: | ---: | ---: |")
    for size in (2, 3):
        rows = []
        for trial in range(arguments.trials):
            data = sample(labelled, size, 50 * 64, trial)
            begun = time.perf_counter()
            plain = accuracy(train(labelled.images.train_images, data, size, arguments.epochs, seed=trial), labelled)
            between = time.perf_counter()
            classifier = MDPUClassifier(
                PRIOR,
                n_epochs=arguments.epochs,
                batch_size=64,
                compare_prior=False,
                random_state=trial,
                device="cpu",
            ).fit(labelled.images.train_images, data)
            ended = time.perf_counter()
            own = 100 * classifier.score(labelled.images.test_images, labelled.labels["test"])
            rows.append((plain, own, between - begun, ended - between))
        print(f"| {size} |", *(f"{value:.1f} |" for value in np.mean(rows, axis=0)), flush=True)


def told(labelled, arguments):
    """Draw what is watched in two runs on triples at prior 0.4, one of which is told 0.8."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 4, figsize=(11, 2.6), layout="constrained")
    images = labelled.images.train_images
    data, held = (sample(labelled, 3, n, trial, 0.4) for n, trial in ((64 * 80, 0), (1000, 1)))
    for prior, style in ((0.4, "o-"), (0.8, "s--")):
        rows = []

        @torch.no_grad()
        def each(network, prior=prior, rows=rows):
            parts = (torch.from_numpy(images[places.ravel()]) for places in (held.tuples, held.unlabeled))
            own, others = (network(part.float() / 255).squeeze(1) for part in parts)
            rows.append([*watch(Law.dominant(3), prior, own.view(-1, 3), others).values(), accuracy(network, labelled)])

        train(images, data, 3, arguments.epochs, prior=prior, each=each)
        names = "likelihood, nats", "the model's own prior", "gap of the laws", "accuracy, % (not known)"
        for ax, name, values in zip(axes, names, np.transpose(rows), strict=True):
            ax.plot(range(1, len(values) + 1), values, style, label=f"told {prior}", markersize=4)
            ax.set(title=name, xlabel="epoch")
    axes[1].axhline(0.4, color="0.7", linewidth=1)
    axes[0].legend()
    figure.savefig(arguments.out, metadata={"Date": None})
    print(np.array(rows).round(3))


def sample(labelled, size, n, trial, prior=PRIOR):
    """Draw tuples, and unlabeled images for as many bags."""
    drawn = labelled.sample(size, prior, n, trial)
    others = labelled.sample(size, prior, n * size, f"unlabeled {trial}")
    return TupleData(drawn.tuples, others.unlabeled)


class Watch(threading.Thread):
    """The highest anonymous memory of this process while it runs, in MiB, beyond that of the beginning."""

    def __init__(self):
        super().__init__(daemon=True)
        self.first = self.highest = self.now()
        self.ended = threading.Event()

    @staticmethod
    def now():
        """Return the anonymous memory."""
        status = Path("/proc/self/status").read_text()
        return int(status.split("RssAnon:")[1].split()[0]) / 1024

    def run(self):
        """Look every tenth of a second."""
        while not self.ended.wait(0.1):
            self.highest = max(self.highest, self.now())

    def stop(self):
        """Return what was used."""
        self.ended.set()
        return self.highest - self.first


def mapped(path, count, part):
    """Write rows in parts into a file, and return it as a memory map that is only read."""
    first = part(np.arange(1))
    file = np.lib.format.open_memmap(path, "w+", first.dtype, (count, *first.shape[1:]))
    for places in np.array_split(np.arange(count), -(-count // 100_000)):
        file[places[0] : places[-1] + 1] = part(places)
    file.flush()
    del file
    return np.load(path, mmap_mode="r")


def fit_mapped(images, labelled, options, n, trial, results):
    """Train in a process of its own, on a memory map in which every member has a row of its own."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        data = labelled.sample(2, PRIOR, n, trial)
        own = np.concatenate([data.tuples.ravel(), data.unlabeled])
        rows = mapped(Path(folder, "rows.npy"), len(own), lambda places: images[own[places]])
        watch, begun = Watch(), time.perf_counter()
        watch.start()
        classifier = MDPUClassifier(PRIOR, random_state=trial, device="cpu", **options)
        classifier.fit(rows, TupleData(np.arange(2 * n).reshape(n, 2), np.arange(2 * n, 3 * n)))
        seconds, used = time.perf_counter() - begun, watch.stop()
        reached = 100 * classifier.score(labelled.images.test_images, labelled.labels["test"])
        results.put((rows.nbytes / 2**20, used, seconds, classifier.n_iter_, reached))


def scale(labelled, arguments):
    """Print memory, seconds and accuracy of `fit` by the number of pairs."""
    print("| pairs | data, MiB | memory beyond it, MiB | s | epochs | accuracy |\n| ---: |" + " ---: |" * 5)
    options = {} if arguments.epochs is None else {"n_epochs": arguments.epochs}
    options |= {} if arguments.hidden is None else {"hidden": (arguments.hidden,)}
    context = multiprocessing.get_context("fork")
    for n in arguments.n:
        results = context.Queue()
        process = context.Process(
            target=fit_mapped, args=(labelled.images.train_images, labelled, options, n, 0, results)
        )
        process.start()
        size, used, seconds, epochs, reached = results.get()
        process.join()
        print(f"| {n:,} | {size:,.0f} | {used:,.0f} | {seconds:,.0f} | {epochs} | {reached:.1f} |", flush=True)


def pairs_in_maps(images, n, folder):
    """Return ten copies of the images in a memory map, and pairs and unlabeled instances among them in two others."""
    source = mapped(folder / "images.npy", 10 * len(images), lambda places: images[places % len(images)])
    drawn = Shuffle(2**40, 0, "instances of the benchmark")
    return source, TupleData(
        mapped(folder / "tuples.npy", n, lambda places: drawn(3 * places[:, None] + [0, 1]) % len(source)),
        mapped(folder / "unlabeled.npy", n, lambda places: drawn(3 * places + 2) % len(source)),
    )


def stream(labelled, arguments):
    """Print memory and images per second of a pass through pairs from memory maps, and of the loop's own steps."""
    print("| pairs | memory, MiB | read, images per s | trained, images per s |\n| ---: | ---: | ---: | ---: |")
    for n in arguments.n:
        with tempfile.TemporaryDirectory() as folder:
            source, data = pairs_in_maps(labelled.images.train_images, n, Path(folder))
            watch, begun, seen = Watch(), time.perf_counter(), 0
            watch.start()
            for batch in TupleDataset(source, data).loader(256):
                seen += len(batch.instances)
            read, used = seen / (time.perf_counter() - begun), watch.stop()
            part = TupleData(data.tuples[:25_600], data.unlabeled[:25_600])
            begun = time.perf_counter()
            train(source, part, 2, 1, batch_size=256)
            trained = 3 * 25_600 / (time.perf_counter() - begun)
        print(f"| {n:,} | {used:,.0f} | {read:,.0f} | {trained:,.0f} |", flush=True)


def main():
    """Read the arguments and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("ranks", "fit", "scale", "stream", "told"))
    parser.add_argument("--images", required=True)
    parser.add_argument("--out", default="told.svg", help="picture of `told`")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--hidden", type=int, help="units of the one hidden layer of `scale`, by default two of 300")
    parser.add_argument("--n", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    arguments = parser.parse_args()
    if arguments.what in ("ranks", "fit", "told"):
        arguments.epochs = arguments.epochs or 12
    torch.set_num_threads(1)
    labelled = Labelled.read(arguments.images, *(FASHION if "fashion" in arguments.images else ()))
    globals()[arguments.what](labelled, arguments)


if __name__ == "__main__":
    main()
