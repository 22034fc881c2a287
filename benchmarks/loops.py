"""The losses in a plain loop: over ranks, beside `fit`, and `fit` and a stream from a memory map at any size.

    python benchmarks/loops.py ranks running --images results/datasets/mnist.npz
    python benchmarks/loops.py fit --images results/datasets/{mnist,fashion-mnist,emnist-letters}.npz
    python benchmarks/loops.py scale stream --images results/datasets/mnist.npz
    python benchmarks/loops.py told --images results/datasets/mnist.npz --out docs/how-to/told.svg

Each but the last adds rows to results/reference/loops.csv, of which `docs/tables.py` makes tables. Accuracies are those
on the test images, in %. Ranks, or microbatches, are simulated in one process: each part of a minibatch corrects its
own risk, or, as `running`, by the sign of the mean of the parts so far. Memory in MiB is the anonymous one of the
process beyond what it had before: pages of a file that is mapped can be dropped, and do not count. Seconds of the
processor stand beside those of the clock, because a machine may have other work.
"""

import argparse
import csv
import functools
import itertools
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
from mdpu.scores import joint, means
from mdpu.streaming import Shuffle, TupleDataset

PRIOR, N = 0.5, 157 * 64
CLASSES = {  # of datasets whose classes do not simply alternate: positive, negative
    "fashion-mnist": (
        ["T-shirt/top", "Pullover", "Shirt", "Bag", "Coat"],
        ["Dress", "Trouser", "Sandal", "Sneaker", "Ankle boot"],
    ),
    "emnist-letters": (list("BDFH"), list("ACEGI")),
}
COLUMNS = ("what", "dataset", "tuple_size", "n", "epochs", "trial", "parts", "accuracy", "seconds", "cpu_seconds")
COLUMNS += ("images", "memory", "data", "bias")


def train(images, data, size, epochs, seed=0, batch_size=64, prior=PRIOR, objective=None, each=lambda network: None):
    """Return the running mean of a perceptron's weights after a loop such as anybody writes."""
    torch.manual_seed(seed)
    layers = nn.Linear(784, 300), nn.ReLU(), nn.Linear(300, 300), nn.ReLU(), nn.Linear(300, 1)
    network = nn.Sequential(nn.Flatten(), *layers)
    mean = AveragedModel(network, multi_avg_fn=get_ema_multi_avg_fn(0.98))
    optimizer = torch.optim.Adam(network.parameters(), 1e-3, weight_decay=5e-4, fused=True)
    loss = objective or TupleLoss(Law.dominant(size), prior)
    loader = TupleDataset(images, data, seed=seed).loader(batch_size)
    for _ in range(epochs):
        for batch in loader:
            scores = batch.split(network(batch.instances.float() / 255).squeeze(1))
            optimizer.zero_grad()
            loss(*scores).backward()
            optimizer.step()
            mean.update_parameters(network)
        each(mean)
    return mean


def scorer(network):
    """Return the function from images to scores."""
    return torch.no_grad()(lambda images: network(torch.from_numpy(images).float() / 255).squeeze(1))


def accuracy(scores, labelled):
    """Return the share of right answers on the test images, in %."""
    truth = labelled.labels["test"]
    answers = scores(labelled.images.test_images[truth != 0]) > 0
    return 100 * float(np.mean(np.asarray(answers) == (truth[truth != 0] > 0)))


def by_parts(size, parts):
    """Return the loss of a minibatch that is cut into parts, each of which corrects its own risk."""
    loss = TupleLoss(Law.dominant(size), PRIOR)
    return lambda *scores: loss(*(own.reshape(parts, -1, size) for own in scores)).mean()


def by_running_sign(size, parts):
    """Return the same where the sign is that of the mean over the parts so far, as one pass can know it."""
    law = Law.dominant(size)
    rate = law.rate(PRIOR)

    def loss(*scores):
        (q, other), (bag_q, _) = (joint(law, own.reshape(parts, -1, size)) for own in scores)
        positive, subtracted, unlabeled = means([other.square(), q.square(), bag_q.square()])
        negative = unlabeled - rate * subtracted
        return (rate * positive + (negative.cumsum(0) >= 0) * negative).mean()

    return loss


def cut(labelled, arguments, what, make):
    """Train on minibatches that are cut into parts, and compare the gradients at the end with the exact ones."""
    images = labelled.images.train_images
    for size, trial in itertools.product((2, 3), range(arguments.trials)):
        data = sample(labelled, size, N, trial)
        for parts in (1, 4, 16, 32):
            network = train(images, data, size, arguments.epochs, trial, objective=make(size, parts))
            bias = gradient_bias(network.module, images, data, by_parts(size, 1), make(size, parts))
            yield {"what": what, "tuple_size": size, "n": N, "trial": trial, "parts": parts, "bias": bias} | {
                "accuracy": accuracy(scorer(network), labelled)
            }


def gradient_bias(network, images, data, exact, loss):
    """Return |mean difference from the exact gradient| / mean length of the exact one, over minibatches, in %."""
    parameters, lengths, apart = list(network.parameters()), [], 0.0
    for batch in TupleDataset(images, data, seed=1).loader(64):
        scores = batch.split(network(batch.instances.float() / 255).squeeze(1))
        gradients = (torch.autograd.grad(of(*scores), parameters, retain_graph=True) for of in (exact, loss))
        whole, own = (torch.cat([part.flatten() for part in gradient]) for gradient in gradients)
        lengths.append(float(whole.norm()))
        apart = apart + (own - whole)
    return 100 * float(apart.norm()) / sum(lengths)


def fit(labelled, arguments):
    """Train the plain loop and `fit` with the same data and epochs."""
    n, images = 100 * 64, labelled.images.train_images
    for size, trial in itertools.product((2, 3), range(arguments.trials)):
        data = sample(labelled, size, n, trial)
        for what, run in beside(images, data, size, arguments.epochs, trial, 64).items():
            scores, taken = timed(run)
            taken |= {"accuracy": accuracy(scores, labelled), "images": arguments.epochs * n * 2 * size}
            yield {"what": what, "tuple_size": size, "n": n, "trial": trial, **taken}


def beside(images, data, size, epochs, trial, batch_size):
    """Return the training by the plain loop and that by `fit`, which return functions from images to scores."""
    options = {"n_epochs": epochs, "batch_size": batch_size, "random_state": trial}
    # With warm_start the rate is constant and the network sees all pixels, as in the loop.
    classifier = MDPUClassifier(PRIOR, compare_prior=False, device="cpu", warm_start=True, **options)
    return {
        "loop": lambda: scorer(train(images, data, size, epochs, trial, batch_size)),
        "fit": lambda: classifier.fit(images, data).decision_function,
    }


def timed(run):
    """Return what a call returns, and its seconds."""
    begun = time.perf_counter(), time.process_time()
    result = run()
    return result, {"seconds": time.perf_counter() - begun[0], "cpu_seconds": time.process_time() - begun[1]}


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
            reached = accuracy(scorer(network), labelled)
            rows.append([*watch(Law.dominant(3), prior, own.view(-1, 3), others).values(), reached])

        train(images, data, 3, arguments.epochs, prior=prior, each=each)
        names = "likelihood, nats", "the model's own prior", "gap of the laws", "accuracy, % (not known)"
        for ax, name, values in zip(axes, names, np.transpose(rows), strict=True):
            ax.plot(range(1, len(values) + 1), values, style, label=f"told {prior}", markersize=4)
            ax.set(title=name, xlabel="epoch")
    axes[1].axhline(0.4, color="0.7", linewidth=1)
    axes[0].legend()
    figure.savefig(arguments.out, metadata={"Date": None})
    return []


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
        self.start()

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


def fit_mapped(labelled, options, n, results):
    """Train in a process of its own, on a memory map in which every member has a row of its own."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as folder:
        data = labelled.sample(2, PRIOR, n, 0)
        own = np.concatenate([data.tuples.ravel(), data.unlabeled])
        rows = mapped(Path(folder, "rows.npy"), len(own), lambda places: labelled.images.train_images[own[places]])
        given = TupleData(np.arange(2 * n).reshape(n, 2), np.arange(2 * n, 3 * n))
        watch, classifier = Watch(), MDPUClassifier(PRIOR, random_state=0, device="cpu", **options)
        _, taken = timed(lambda: classifier.fit(rows, given))
        taken |= {"memory": watch.stop(), "data": rows.nbytes / 2**20, "epochs": classifier.n_iter_}
        reached = 100 * classifier.score(labelled.images.test_images, labelled.labels["test"])
        results.put({**taken, "images": 3 * n * classifier.n_iter_, "accuracy": reached})


def scale(labelled, arguments):
    """Measure memory, seconds and accuracy of `fit` by the number of pairs."""
    options = {} if arguments.epochs is None else {"n_epochs": arguments.epochs}
    context = multiprocessing.get_context("fork")
    for n in arguments.n:
        results = context.Queue()
        process = context.Process(target=fit_mapped, args=(labelled, options, n, results))
        process.start()
        measured = results.get()
        process.join()
        yield {"what": "scale", "tuple_size": 2, "n": n, "trial": 0, **measured}


def pairs_in_maps(images, n, folder):
    """Return ten copies of the images in a memory map, and pairs and unlabeled instances among them in two others."""
    source = mapped(folder / "images.npy", 10 * len(images), lambda places: images[places % len(images)])
    drawn = Shuffle(2**40, 0, "instances of the benchmark")
    return source, TupleData(
        mapped(folder / "tuples.npy", n, lambda places: drawn(3 * places[:, None] + [0, 1]) % len(source)),
        mapped(folder / "unlabeled.npy", n, lambda places: drawn(3 * places + 2) % len(source)),
    )


def stream(labelled, arguments):
    """Measure a pass through pairs from memory maps, and the training by the loop and by `fit` on a part of them."""
    part, epochs = 25_600, 4
    for n in arguments.n:
        with tempfile.TemporaryDirectory() as folder:
            source, data = pairs_in_maps(labelled.images.train_images, n, Path(folder))
            watch, loader, row = Watch(), TupleDataset(source, data).loader(256), {"tuple_size": 2, "n": n}
            _, taken = timed(lambda loader=loader: sum(1 for _ in loader))
            yield {"what": "read", **row, **taken, "images": 3 * n, "memory": watch.stop()}
            data = TupleData(data.tuples[:part], data.unlabeled[:part])
            for what, run in beside(source, data, 2, epochs, 0, 256).items():
                _, taken = timed(run)
                yield {"what": f"stream {what}", **row, **taken, "images": 3 * len(data.tuples) * epochs}


MEASURES = {
    "ranks": functools.partial(cut, what="ranks", make=by_parts),
    "running": functools.partial(cut, what="running", make=by_running_sign),
    **{measure.__name__: measure for measure in (fit, scale, stream, told)},
}


def main():
    """Read the arguments, measure and keep the rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", choices=MEASURES)
    parser.add_argument("--images", nargs="+", type=Path, required=True)
    parser.add_argument("--out", help="file of the rows, or picture of `told`")
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--n", type=int, nargs="+", default=[1000, 10_000, 100_000, 1_000_000])
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    file = Path(arguments.out or "results/reference/loops.csv")
    asked = arguments.epochs
    for path in arguments.images:
        labelled = Labelled.read(path, *CLASSES.get(path.stem, ()))
        for what in arguments.what:
            arguments.epochs = asked or {"ranks": 6, "running": 6, "fit": 12, "told": 8}.get(what)
            for row in MEASURES[what](labelled, arguments):
                row = {"dataset": path.stem, "epochs": arguments.epochs, **row}
                begins = not file.exists()
                with file.open("a", newline="") as opened:
                    writer = csv.DictWriter(opened, COLUMNS, lineterminator="\n")
                    if begins:
                        writer.writeheader()
                    writer.writerow({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()})
                print(row, flush=True)


if __name__ == "__main__":
    main()
