"""Readings: what they change, which run is of which, and whether a known one is found."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from mdpu.errors import UserError
from mdpu.pipeline.config import as_yaml, from_snakemake, load_config, merge
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.comparison import NOT_RUN, REPRODUCED
from mdpu.pipeline.evaluate.known import best_power, held_out
from mdpu.pipeline.evaluate.model import FACTOR, FACTORS, GRID, SCALE, Model
from mdpu.pipeline.evaluate.panel import Panel, unexplained, verdicts
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.job import asked
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.store import Stored, read_runs, write_runs

CONFIG = load_config()
READINGS = Readings(CONFIG)
EPOCHS = ("last-ten", "all", "last", "best")


def test_the_first_value_of_a_choice_is_the_protocols():
    for choice in READINGS.choices:
        first, *others = READINGS.values(choice)
        usual = READINGS.changes({choice: first})
        assert merge(CONFIG["protocol"], usual["protocol"]) == CONFIG["protocol"]
        for value in others:
            assert READINGS.changes({choice: value}) != usual
    assert READINGS.named["protocol"] == READINGS.protocol
    assert READINGS.name(READINGS.named["literal"]) == "epochs all, letters all-26"


@pytest.mark.parametrize(
    ("definitions", "named"),
    [
        ("{readings: {mine: {epoch: all}}}", "did you mean 'epochs'"),
        ("{readings: {mine: {epochs: every}}}", "definitions.readings.mine.epochs"),
        ("{choices: {scope: {values: {class: {methods: {relu: relu-clas}}}}}}", "'relu-class'"),
        (
            "{choices: {letters: {values: {a-i: {datasets: {emnist-letters: a-i}}}}}}",
            "values.a-i",
        ),
        (
            "{choices: {batch: {values: {tuples: {protocol: {batch_counts: tuples}}}}}}",
            "batch_counts",
        ),
        ("{choices: {mine: {sentence: null, place: here}}}", "values"),
    ],
)
def test_a_wrong_choice_or_reading_is_refused(definitions, named):
    with pytest.raises(UserError, match=named):
        from_snakemake(as_yaml({"definitions": definitions}))


def specs(**changes):
    """Return what is asked of the first trial of MNIST's pairs at prior 0.5 under changes of the
    protocol.
    """
    overlay = {
        "datasets": ["mnist"],
        "experiments": ["table2"],
        "axes": {"prior": [0.5], "variant": ["mine"]},
        "definitions": {"variants": {"mine": changes}},
    }
    plan = Plan(merge(CONFIG, overlay))
    return {spec["method"]: asked(spec, 1) for spec in map(plan.spec, plan.cells)}


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "protocol"),
        ({"sampling": {"replacement": False}}, "replacement without"),
        ({"sampling": {"n_counts": "images"}}, "counts images"),
        (
            {
                "training": {"networks": {"mlp": {"hidden": [300]}}},
                "sampling": {"n_unlabeled": "2n"},
            },
            "unlabeled 2n, layers one-hidden",
        ),
        ({"training": {"precision": "bfloat16"}}, "protocol"),
    ],
)
def test_a_run_is_of_the_reading_that_asks_for_it(changes, name):
    axes = READINGS.axes(specs(**changes)["relu"])
    assert axes["variant"] == name
    assert axes["n"] == 10000
    assert axes["tuple_size"] == 2
    assert axes["prior"] == "0.5"
    assert axes["seed"] == 1


@pytest.mark.parametrize(
    "changes",
    [
        {"training": {"epochs": 5}},
        {"training": {"prior_offset": 0.1}},
        {"sampling": {"broken": 0.1}},
    ],
)
def test_a_run_that_no_reading_asks_for_is_left_out(changes):
    assert READINGS.axes(specs(**changes)["ure"]) is None


def test_a_run_on_other_sides_is_left_out():
    sides = {"positive": ["0"], "negative": ["1"]}
    assert READINGS.axes({**specs()["ure"], "sides": sides}) is None


RISING = np.linspace(0.01, 1, 100)


def stored(what, accuracy, precision="float32", **more):
    history = pd.DataFrame(
        {
            "epoch": np.arange(1, 101),
            "objective": 0.0,
            "accuracy": accuracy,
            "true_positive_rate": accuracy,
            "true_negative_rate": accuracy,
        }
    )
    return Stored.of({**what, **more}, history, precision=precision)


def test_trials_are_reported_in_every_way_and_float32_counts():
    spec = specs()
    runs = [
        stored(spec["ure"], RISING / 2, "bfloat16", recipe=0),
        stored(spec["ure"], RISING),
        stored(spec["siamese"], RISING),
        stored(spec["relu"], np.where(RISING > 0.5, np.nan, RISING)),
    ]

    trials = READINGS.read_trials(runs).set_index(["method", "epochs"])["accuracy"]

    assert trials["ure"].to_dict() == pytest.approx(
        {"last-ten": 95.5, "all": 50.5, "last": 100, "best": 100}
    )
    assert np.isnan(trials["relu"]["last-ten"])
    assert set(trials.index.levels[0]) == {"ure", "relu"}


def test_a_run_that_diverged_at_once_is_read(tmp_path):
    """A file keeps no measure that is missing throughout."""
    lost = stored(specs()["ure"], np.full(100, np.nan))
    file = tmp_path / "runs.parquet"
    write_runs(file, [lost])
    (read,) = read_runs(file).values()
    assert "true_positive_rate" not in read.history
    assert READINGS.read_trials([read])["accuracy"].isna().all()


UNSHIFTED = {"with": 0}


def make_panel(
    shifts=UNSHIFTED, between=2.0, seeds=5, noise=(1.0, 1.0, 1.0, 1.0), shared=1.0, seed=0
):
    """Return a panel of 36 cells, with readings of some trainings in four ways to report them.

    Trainings differ by `between` points from cell to cell and by `shifts` in all; `shared` is the
    noise that all ways to report a run share, `noise` that of each.
    """
    random = np.random.default_rng(seed)
    of_mnist = "method in ['ure', 'relu', 'abs'] and dataset == 'mnist'"
    cells = published_cells().query(of_mnist).reset_index(drop=True)
    shape = (len(cells), seeds)
    readings = []
    trials = []
    for training, shift in shifts.items():
        mean = 90 + shift + between * random.standard_normal((len(cells), 1))
        runs = mean + shared * random.standard_normal(shape)
        for value, level in zip(EPOCHS, noise, strict=True):
            departures = {"epochs": value, "replacement": training}
            readings.append(READINGS.reading(departures))
            trials.append(runs + level * random.standard_normal(shape))
    return Panel(readings, cells, np.array(trials))


def test_the_prior_is_alike_for_each_choice():
    panel = make_panel({"with": 0, "without": 0})
    assert np.allclose(panel.prior, 1 / 8)
    few = Panel(panel.readings[:6], panel.cells, panel.trials[:6])
    shares = few.by_choice(few.prior)
    assert shares["epochs"]["last-ten"] > shares["epochs"]["best"]
    assert sum(shares["replacement"].values()) == pytest.approx(1)
    assert "scope" not in shares


def test_an_offset_of_each_method_costs_little_and_one_of_each_cell_much():
    model = Model(make_panel())
    plain = model.mean[0]
    offsets = {"ure": 2.0, "relu": -2.0, "abs": 1.0}
    shifted = plain + model.panel.cells["method"].map(offsets).to_numpy()
    scattered = plain + 2.0 * np.resize([1, -1], 36)
    likelihood = model.likelihood(np.stack([plain, shifted, scattered]))
    of_plain, of_shifted, of_scattered = likelihood.mean[:, 0]
    assert of_plain > of_shifted > of_scattered

    kappa = likelihood.kappa[:, 0]
    assert kappa[1] > 3 * kappa[0]
    tau = likelihood.tau[:, 0]
    assert tau[2] > 3 * tau[0]
    assert likelihood.unshifted[1, 0] < of_shifted - 10


def test_means_borrow_from_other_ways_to_report_the_same_runs():
    """The last epoch is noisy; the mean of all epochs of the same runs says where it would be
    without the noise.
    """
    silent = make_panel(noise=[0] * 4, shared=0, seed=1)
    truth = silent.trials[0, :, 0]
    panel = make_panel(noise=[1, 0.1, 4, 1], seed=1)
    last = EPOCHS.index("last")
    trials = panel.trials[last]

    model = Model(panel)

    borrowed = model.mean[last] - truth
    plain = trials.mean(axis=1) - truth
    mean_square = np.square(borrowed).mean()
    assert mean_square < np.square(plain).mean() / 2
    variances = trials.var(axis=1, ddof=1) / 5
    assert model.error[last].mean() < variances.mean() / 2


def test_known_readings_are_found_among_real_trials():
    panel = make_panel({"with": 0, "without": 1}, noise=(1.0, 0.1, 4.0, 0.3), shared=0.2)
    papers = held_out(panel, 3)
    assert papers.likelihood.shape == (80, 8)
    power = best_power(panel, papers)
    posterior = panel.posterior(papers.likelihood, power)
    top = posterior.argmax(axis=1)
    of_training = len(EPOCHS)
    assert (top // of_training == papers.truth // of_training).all()
    assert np.mean(top == papers.truth) > 0.6


def test_equal_readings_of_a_cell_count_once():
    """A scope changes nothing of URE, nor do the letters of MNIST."""
    runs = [stored(specs()["ure"], RISING)]
    panel = Panel.of(READINGS, READINGS.read_trials(runs))
    cell = "dataset == 'mnist' and tuple_size == 2 and n == 10000 and prior == '0.5'"
    place = panel.cells.eval(f"{cell} and method == 'ure'").to_numpy()

    names = [READINGS.name(reading) for reading in panel.on(place, 1).readings]
    assert names == ["protocol", "epochs all", "epochs best", "epochs last"]
    assert panel.on(place).readings == []  # three trials are asked for


def weights_of_grid():
    """Return the weight of each value of the grid: the density of half a normal distribution."""
    density = np.exp(-((GRID / SCALE) ** 2) / 2)
    weight = density * np.gradient(GRID)
    return weight / weight.sum()


def test_the_likelihood_of_means_is_that_of_the_formula():
    model = Model(make_panel())
    means = np.full(36, 90.0)

    likelihood = model.likelihood(means, np.full(36, 0.8))

    methods = model.panel.cells["method"].to_numpy()
    of_same_method = methods[:, None] == methods
    distances = means - model.mean[1]
    logs = np.log(weights_of_grid())
    weighted = zip(GRID, logs, strict=True)
    terms = []
    for (tau, log_of_tau), (kappa, log_of_kappa) in itertools.product(weighted, repeat=2):
        of_shifts = tau**2 * np.eye(36) + kappa**2 * of_same_method
        normal = stats.multivariate_normal(cov=model.covariance[1] + of_shifts)
        terms.append(log_of_tau + log_of_kappa + normal.logpdf(distances))
    assert likelihood.mean[0, 1] == pytest.approx(special.logsumexp(terms))
    assert likelihood.both == pytest.approx(likelihood.mean + likelihood.std)


def test_the_likelihood_of_deviations_is_that_of_the_formula():
    model = Model(make_panel())
    stds = np.full(36, 0.8)

    likelihood = model.likelihood(np.full(36, 90.0), stds)

    shares = stats.norm.pdf(FACTORS)
    shares /= shares.sum() * 2
    terms = []
    for divisor in (1, 2 / 3):  # of what the paper calls a deviation
        factors = np.exp(2 * FACTOR * FACTORS) * divisor
        for share, factor in zip(shares, factors, strict=True):
            ratio = stds**2 / (factor * model.variance[1])
            # The density of a logarithm of a deviation is that of the ratio times its derivative.
            logs = stats.f.logpdf(ratio, 2, model.freedom) + np.log(2 * ratio)
            terms.append(np.log(share) + logs.sum())
    assert likelihood.std[0, 1] == pytest.approx(special.logsumexp(terms))


def test_trials_of_a_split_correlate_over_the_methods():
    panel = make_panel(seeds=40)
    split = panel.cells.groupby(["tuple_size", "n", "prior"]).ngroup()
    noise = np.random.default_rng(1).standard_normal((12, 40))
    trials = panel.trials + 2 * noise[split.to_numpy()]
    together = Panel(panel.readings, panel.cells, trials)

    assert Model(panel).correlation < 0.1
    assert 0.4 < Model(together).correlation < 0.9


def test_verdicts_are_those_of_the_rule_and_cells_far_from_all_readings_are_named():
    panel = make_panel()
    means, stds = panel.published
    centred = stds[:, None] * np.array([-1.0, -0.5, 0.0, 0.5, 1.0])
    trials = np.broadcast_to(means[:, None] + centred, panel.trials.shape).copy()
    trials[:, 0] += 20
    trials[0, 1] = np.nan
    near = Panel(panel.readings, panel.cells, trials)
    judged = verdicts(near, CONFIG["comparison"])
    assert judged[0, 1] == NOT_RUN
    assert judged[1, 0] == "differs"
    assert (judged[1, stds < 1.2] == REPRODUCED).sum() > 20
    ((place, readings, gap),) = unexplained(near, 0.95)
    assert (place, readings, round(gap)) == (0, 1, 20)
