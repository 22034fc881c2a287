"""Readings: what they change, which run is of which, and whether a known one is found."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from mdpu.errors import UserError
from mdpu.pipeline.config import load_config, merge
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.comparison import NOT_RUN, REPRODUCED
from mdpu.pipeline.evaluate.known import best_power, held_out
from mdpu.pipeline.evaluate.model import FACTOR, FACTORS, GRID, SCALE, Model
from mdpu.pipeline.evaluate.panel import Panel, unexplained, verdicts
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.job import asked
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.store import Stored

CONFIG = load_config()
READINGS = Readings(CONFIG)
EPOCHS = ("last-ten", "all", "last", "best")


def test_the_first_value_of_a_choice_is_the_protocols():
    for choice in READINGS.choices:
        first, *others = READINGS.values(choice)
        assert (
            merge(CONFIG["protocol"], READINGS.changes({choice: first})["protocol"])
            == CONFIG["protocol"]
        )
        for value in others:
            assert READINGS.changes({choice: value}) != READINGS.changes({choice: first})
    assert READINGS.named["protocol"] == READINGS.protocol
    assert READINGS.name(READINGS.named["literal"]) == "epochs all, letters all-26"


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ("definitions={readings: {mine: {epoch: all}}}", "did you mean 'epochs'"),
        ("definitions={readings: {mine: {epochs: every}}}", "definitions.readings.mine.epochs"),
        (
            "definitions={choices: {scope: {values: {class: {methods: {relu: relu-clas}}}}}}",
            "'relu-class'",
        ),
        (
            "definitions={choices: {letters: {values: {a-i: {datasets: {emnist-letters: a-i}}}}}}",
            "values.a-i",
        ),
        (
            "definitions={choices: {batch: {values: {tuples: "
            "{protocol: {batch_counts: tuples}}}}}}",
            "batch_counts",
        ),
        ("definitions={choices: {mine: {sentence: null, place: here}}}", "values"),
    ],
)
def test_a_wrong_choice_or_reading_is_refused(value, named):
    with pytest.raises(UserError, match=named):
        load_config(values=[value])


def specs(**changes):
    """Return what is asked of the first trial of MNIST's pairs at prior 0.5 under changes of the
    protocol.
    """
    overlay = {
        "datasets": ["mnist"],
        "experiments": ["table2"],
        "axes": {"prior": [0.5], "variant": ["mine"]},
    }
    config = merge(CONFIG, {**overlay, "definitions": {"variants": {"mine": changes}}})
    return {spec["method"]: asked(spec, 1) for spec in map(Plan(config).spec, Plan(config).cells)}


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
    assert (axes["variant"], axes["n"], axes["tuple_size"], axes["prior"], axes["seed"]) == (
        name,
        10000,
        2,
        "0.5",
        1,
    )


def test_a_run_that_no_reading_asks_for_is_left_out():
    assert READINGS.axes(specs(training={"epochs": 5})["ure"]) is None
    assert READINGS.axes(specs(training={"prior_offset": 0.1})["ure"]) is None
    assert READINGS.axes(specs(sampling={"broken": 0.1})["ure"]) is None
    assert (
        READINGS.axes({**specs()["ure"], "sides": {"positive": ["0"], "negative": ["1"]}}) is None
    )


def stored(what, accuracy, precision="float32", **more):
    rates = {"true_positive_rate": accuracy, "true_negative_rate": accuracy}
    history = pd.DataFrame(
        {"epoch": np.arange(1, 101), "objective": 0.0, "accuracy": accuracy, **rates}
    )
    return Stored.of({**what, **more}, history, precision=precision)


def test_trials_are_reported_in_every_way_and_float32_counts():
    rising = np.linspace(0.01, 1, 100)
    diverging = np.where(rising > 0.5, np.nan, rising)
    spec = specs()
    runs = [
        stored(spec["ure"], rising / 2, "bfloat16", recipe=0),
        stored(spec["ure"], rising),
        stored(spec["siamese"], rising),
        stored(spec["relu"], diverging),
    ]
    trials = READINGS.read_trials(runs).set_index(["method", "epochs"])["accuracy"]
    assert trials["ure"].round(6).to_dict() == {
        "last-ten": 95.5,
        "all": 50.5,
        "last": 100,
        "best": 100,
    }
    assert np.isnan(trials["relu"]["last-ten"])
    assert set(trials.index.levels[0]) == {"ure", "relu"}
    panel = Panel.of(READINGS, READINGS.read_trials(runs))
    asked_for = ["mnist", 2, 10000, "0.5", "ure"]
    keys = panel.cells[["dataset", "tuple_size", "n", "prior", "method"]]
    place = (keys == asked_for).all(axis=1)
    # A scope changes nothing of URE, nor do the letters of MNIST: equal readings count once.
    names = [READINGS.name(reading) for reading in panel.on(place, 1).readings]
    assert names == ["protocol", "epochs all", "epochs best", "epochs last"]
    assert panel.on(place).readings == []  # three trials are asked for


def make_panel(shifts, between=2.0, seeds=5, noise=(1.0, 1.0, 1.0, 1.0), shared=1.0, seed=0):
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


def test_the_likelihood_is_that_of_the_formulas():
    model = Model(make_panel({"with": 0}))
    means = np.full(36, 90.0)
    stds = np.full(36, 0.8)
    likelihood = model.likelihood(means, stds)
    weight = np.exp(-((GRID / SCALE) ** 2) / 2) * np.gradient(GRID)
    weights = dict(zip(GRID, weight / weight.sum(), strict=True))
    methods = model.panel.cells["method"].to_numpy()
    same = methods[:, None] == methods
    terms = []
    for tau, kappa in itertools.product(GRID, repeat=2):
        covariance = model.covariance[1] + tau**2 * np.eye(36) + kappa**2 * same
        log = stats.multivariate_normal.logpdf(means, model.mean[1], covariance)
        terms.append(np.log(weights[tau] * weights[kappa]) + log)
    assert likelihood.mean[0, 1] == pytest.approx(special.logsumexp(terms))

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
    assert likelihood.both == pytest.approx(likelihood.mean + likelihood.std)


def test_an_offset_of_each_method_costs_little_and_one_of_each_cell_much():
    model = Model(make_panel({"with": 0}))
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
    panel = make_panel({"with": 0}, noise=(1.0, 0.1, 4.0, 1.0), seed=1)
    without_noise = make_panel({"with": 0}, noise=(0.0, 0.0, 0.0, 0.0), shared=0.0, seed=1)
    true = without_noise.trials[0, :, 0]
    model = Model(panel)
    last = EPOCHS.index("last")
    trials = panel.trials[last]
    borrowed = ((model.mean[last] - true) ** 2).mean()
    plain = ((trials.mean(axis=1) - true) ** 2).mean()
    assert borrowed < plain / 2
    variance = trials.var(axis=1, ddof=1).mean() / 5
    assert model.error[last].mean() < variance / 2


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


def test_trials_of_a_split_correlate_over_the_methods():
    panel = make_panel({"with": 0}, seeds=40)
    rows = panel.cells.groupby(["tuple_size", "n", "prior"]).ngroup()
    of_split = np.random.default_rng(1).standard_normal((12, 40))
    shared = of_split[rows.to_numpy()]
    together = Model(Panel(panel.readings, panel.cells, panel.trials + 2 * shared))
    assert Model(panel).correlation < 0.1
    assert 0.4 < together.correlation < 0.9


def test_verdicts_are_those_of_the_rule_and_cells_far_from_all_readings_are_named():
    panel = make_panel({"with": 0})
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
