"""The claims: quotes that are in the paper, cases that can fail, and the paper's own numbers."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.claims import CLAIMS, check_claims, status
from mdpu.pipeline.evaluate.collect import run_accuracies
from mdpu.pipeline.evaluate.comparison import share_interval
from mdpu.pipeline.evaluate.evidence import Evidence, our_evidence, paper_evidence, run_facts
from mdpu.pipeline.evaluate.published import METHODS, published_cells
from mdpu.pipeline.files import REPOSITORY
from mdpu.pipeline.plan import AXES, CELL, Plan, Run

PAPER = REPOSITORY.parent / "shared" / "paper" / "mdpu.tex"
RULE = {"level": 0.95, "margin": 1.0, "wider_margin": 2.0}
REPORTING = {"average_last": 2, "test_prior": "natural"}


CELLS = {
    "dataset": "mnist",
    "variant": "base",
    "tuple_size": 2,
    "n": 10000,
    "prior": "0.5",
    "loss": "logistic",
    "law": "dominant",
    "std": 1.0,
    "trials": 3,
}


def cells(*rows, **common):
    """Return a summary with one cell per (method, mean), and what else all share."""
    table = pd.DataFrame(rows, columns=["method", "mean"])
    return table.assign(**CELLS | common)


def evidence(*frames, runs=None, **others):
    """Return cells as evidence of runs, of which none has a history unless `runs` are given."""
    if runs is None:
        runs = facts(history(accuracy=[50], risk=[1.0]))[:0]
    return Evidence(pd.concat(frames, ignore_index=True), RULE, runs, **others)


def held(name, of):
    """Return the outcome of each case of a claim."""
    return CLAIMS[name].check(of)["holds"].tolist()


def checked(of):
    """Return what is said of every claim."""
    return check_claims(of, paper_evidence(RULE))[0].set_index("claim")


def history(method="ure", seed=1, accuracy=(), risk=(), objective=None, variant="base"):
    if objective is None:
        objective = risk
    columns = {"accuracy": np.array(accuracy) / 100, "risk": risk, "objective": objective}
    epochs = pd.DataFrame({"epoch": range(1, len(risk) + 1), **columns})
    run = Run("mnist", variant, 2, 10000, "0.5", method, "logistic", seed)
    return epochs.assign(**vars(run))


def facts(*histories):
    metrics = pd.concat(histories, ignore_index=True)
    return run_facts(metrics, run_accuracies(metrics, REPORTING), REPORTING["test_prior"])


@pytest.mark.skipif(not PAPER.exists(), reason="the paper's source is not beside the repository")
@pytest.mark.parametrize("name", CLAIMS)
def test_every_quote_stands_in_the_paper(name):
    text = PAPER.read_text(encoding="utf-8")
    plain = " ".join(re.sub(r"\\emph\{([^}]*)\}|[{}]", r"\1", text).split())
    assert CLAIMS[name].quote in plain


def count_better(mean, methods, others):
    """Return in how many rows and methods a mean is above that of all others of the row."""
    count = 0
    for row in {key[:3] for key in mean}:
        best = max(mean[(*row, method)] for method in others)
        count += sum(mean[(*row, method)] > best for method in methods)
    return count


def test_the_papers_numbers_by_an_independent_count():
    """Counted with plain loops over the 504 cells."""
    columns = published_cells()[["table", "prior", "dataset", "method", "published_mean"]]
    mean = {tuple(key): value for *key, value in columns.itertuples(index=False)}
    paper = checked(paper_evidence(RULE))["paper"]

    better = count_better(mean, ("relu", "abs"), ("ure",))
    assert paper["corrected-beats-ure"] == f"{better} of 168" == "167 of 168"
    above = count_better(mean, ("ure", "relu", "abs"), ("siamese", "contrastive", "kmeans"))
    assert paper["proposed-beat-baselines"] == f"{above} of 252" == "241 of 252"
    assert set(paper[["ure-overfits", "loss-hardly-matters"]]) == {"not in its numbers"}


THREE = (("siamese", 60), ("contrastive", 85), ("kmeans", 50))
LOSSES = [cells(("abs", mean), loss=loss) for loss, mean in (("logistic", 80), ("ramp", 82))]
HARD = [
    cells(("abs", mean), n=n, dataset="svhn") for n, mean in ((2000, 60), (4000, 70), (6000, 69))
]
MORE = [cells(("ure", 80), ("abs", 90)), cells(("ure", 81), ("abs", 89), variant="unlabeled 2n")]
USUAL = [*LOSSES, cells(("abs", 81), loss="usual-ramp"), cells(("abs", 60), loss="hinge", n=12000)]
ADAMW = [
    cells(("ure", 80), ("abs", 90)),
    cells(("ure", 81), ("abs", 87.9), variant="optimizer adamw"),
]
RATE = [
    cells(("ure", 100 - a), ("relu", 100 - b), ("abs", 90), n=n)
    for a, b, n in ((20, 20, 2500), (9, 18, 10_000), (4.5, 16, 40_000))
]
# Claim, cells, and the outcome of each case; the histories are there and hold nothing.
CASES = [
    # A corrected method is compared with the URE of its own cell.
    ("corrected-beats-ure", [cells(("ure", 80), ("relu", 81), ("abs", 79))], [True, False]),
    ("corrected-beats-ure", [cells(("ure", 80), ("relu", np.nan))], [False]),  # diverged
    ("corrected-beats-ure", [cells(("ure", 80), ("relu", 81), variant="x")], []),
    ("corrected-beats-ure", [cells(("ure", 80), ("relu", 81), loss="ramp")], []),
    (
        "corrected-beats-ure-significantly",
        [cells(("ure", 80), ("relu", 81), ("abs", 79))],
        [False, False],
    ),
    (
        "corrected-beats-ure-significantly",
        [cells(("ure", 80), ("relu", 90), ("abs", 81))],
        [True, False],
    ),
    # Left out on its own side alone, a cell that diverged would make an average of different cells.
    (
        "corrected-beats-ure-at-priors",
        [cells(("ure", 90), ("relu", 91)), cells(("ure", 60), ("relu", np.nan), prior="0.4")],
        [False, True],
    ),
    (
        "corrected-beats-ure-on-datasets",
        [cells(("ure", 90), ("relu", 91)), cells(("ure", 60), ("relu", np.nan), prior="0.4")],
        [False],
    ),
    ("proposed-beat-baselines", [cells(("ure", 80), ("abs", 86), *THREE)], [False, True]),
    ("proposed-beat-baselines", [cells(("ure", 80), ("abs", 86), *THREE[:2])], []),
    (
        "every-loss-beats-the-baselines",
        [cells(*THREE), cells(("abs", 90)), cells(("abs", 84), loss="ramp")],
        [True, False],
    ),
    ("every-loss-beats-the-baselines", LOSSES, []),
    ("more-unlabeled-images-help", MORE, [True, False]),
    ("no-saturation-on-hard-data", HARD, [False]),
    ("no-saturation-on-hard-data", [cell.assign(dataset="mnist") for cell in HARD], []),
    ("loss-hardly-matters", LOSSES, [True]),
    ("loss-hardly-matters", [*LOSSES, cells(("abs", 82.1), loss="hinge")], [False]),
    ("loss-hardly-matters", [*LOSSES, cells(("abs", np.nan), loss="hinge")], [False]),
    ("loss-hardly-matters", LOSSES[:1], []),
    # Each ramp loss is judged without the other, the usual one in its own rows alone.
    ("loss-hardly-matters", [*USUAL, cells(("abs", 90), loss="usual-ramp", n=2000)], [True]),
    (
        "loss-hardly-matters-with-the-usual-ramp",
        [USUAL[0], USUAL[1].assign(mean=50.0), *USUAL[2:]],
        [True],
    ),
    ("loss-hardly-matters-with-the-usual-ramp", LOSSES, []),
    ("every-loss-beats-the-baselines", [cells(*THREE), USUAL[2].assign(mean=90.0)], []),
    ("every-loss-beats-the-baselines-with-the-usual-ramp", [cells(*THREE), *USUAL], [False, False]),
    ("optimizer-hardly-matters", ADAMW, [True, False]),
    ("optimizer-hardly-matters", ADAMW[:1], []),
    ("error-falls-at-the-parametric-rate", RATE, [False, False, True]),
    ("error-falls-at-the-parametric-rate", RATE[:2], []),
]


@pytest.mark.parametrize(("name", "frames", "outcome"), CASES)
def test_a_claim_about_cells_holds_case_by_case(name, frames, outcome):
    assert held(name, evidence(*frames)) == outcome


TRAINED = [
    *(("base", method) for method in METHODS),
    *(("unlabeled 2n", method) for method in METHODS[:3]),
]


def cells_of_noise(datasets=60):
    """Return cells whose methods, losses, sizes and priors make no difference."""
    axes = {
        "dataset": range(datasets),
        "tuple_size": [2, 3],
        "n": [2000, 4000],
        "prior": ["0.4", "0.5"],
        "trained": TRAINED,
    }
    keys = pd.MultiIndex.from_product(axes.values(), names=axes).to_frame(index=False)
    keys[["variant", "method"]] = keys.pop("trained").tolist()

    random = np.random.default_rng(3)
    trials = random.normal(80, 1, (len(keys), 3))
    std = trials.std(axis=1, ddof=1)
    return keys.assign(loss="logistic", law="dominant", mean=trials.mean(axis=1), std=std, trials=3)


def test_the_pass_rate_by_chance_is_that_of_noise():
    noise = evidence(cells_of_noise())
    table, _ = check_claims(noise, paper_evidence(RULE))
    tested = table[table["by_chance"].notna() & (table["ours_cases"] >= 100)]
    assert len(tested) >= 8
    for row in tested.to_dict("records"):
        chance = row["by_chance"]
        # Cases share cells, so they scatter more than independent ones; two tails of five standard
        # errors.
        error = np.sqrt(chance * (1 - chance) / row["ours_cases"])
        assert abs(row["ours_rate"] - chance) < 5 * error, row["claim"]


@pytest.mark.parametrize(
    ("claim", "axis", "value", "held_by_all", "held_by_common"),
    [
        ("more-unlabeled-images-help", "variant", "unlabeled 2n", [False], [True]),
        ("loss-hardly-matters", "loss", "hinge", [False], [True]),
    ],
)
def test_variants_and_losses_are_compared_by_the_seeds_that_both_have(
    claim, axis, value, held_by_all, held_by_common
):
    """Seed 3, which one side lacks, is far better than the others."""
    accuracies = {"usual": {1: 80, 2: 81, 3: 95}, value: {1: 81, 2: 82}}
    trials = []
    for side, by_seed in accuracies.items():
        for seed, accuracy in by_seed.items():
            key = {**CELLS, "method": "ure", "seed": seed, "accuracy": float(accuracy)}
            trials.append(key if side == "usual" else {**key, axis: value})
    trials = pd.DataFrame(trials).drop(columns=["std", "trials"])
    usual, other = cells(("ure", 256 / 3)), cells(("ure", 81.5), **{axis: value})
    assert held(claim, evidence(usual, other)) == held_by_all
    assert held(claim, evidence(usual, other, trials=trials)) == held_by_common


def test_a_seed_that_diverged_on_one_side_counts_on_neither():
    key = {**CELLS, "method": "ure"}
    accuracies = {"base": {1: 80, 2: 81, 3: np.nan}, "unlabeled 2n": {1: 79, 2: 80, 3: 95}}
    trials = [
        {**key, "variant": variant, "seed": seed, "accuracy": accuracy}
        for variant, by_seed in accuracies.items()
        for seed, accuracy in by_seed.items()
    ]
    trials = pd.DataFrame(trials).drop(columns=["std", "trials"])
    usual = cells(("ure", 80.5))
    more = cells(("ure", 254 / 3), variant="unlabeled 2n")
    said = held("more-unlabeled-images-help", evidence(usual, more, trials=trials))
    assert said == [False]


def test_single_trials_are_checked_seed_by_seed():
    """ReLU beats URE in both cells on average, but at the second seed in one alone; the deviations
    have no trial.
    """
    accuracies = {
        ("0.4", "ure"): [80, 80, 80],
        ("0.4", "relu"): [90, 70, 90],
        ("0.5", "ure"): [70, 70, 70],
        ("0.5", "relu"): [75, 75, np.nan],
    }
    frames = []
    for (prior, method), values in accuracies.items():
        rows = [(method, value) for value in values]
        frames.append(cells(*rows, prior=prior).assign(seed=[1, 2, 3]))
    trials = pd.concat(frames).rename(columns={"mean": "accuracy"})
    by_cell = trials.groupby([*CELL], as_index=False)["accuracy"]
    summary = by_cell.agg(["mean", "std"]).assign(trials=3)

    rows = checked(evidence(summary, trials=trials[[*AXES, "accuracy"]]))

    row = rows.loc["corrected-beats-ure"]
    assert row["ours"] == "2 of 2"
    assert row["trials"] == 3
    assert row["trial_rate"] == pytest.approx(4 / 6)  # a trial that diverged does not hold
    low, high = share_interval([2, 1, 1], [2, 2, 2], 0.95)
    assert row["trial_low"] == pytest.approx(low)
    assert row["trial_high"] == pytest.approx(high)
    assert re.fullmatch(r"67 % \(\d+ to \d+\)", row["in_single_trials"])

    significant = rows.loc["corrected-beats-ure-significantly"]
    assert significant["trials"] == 0
    assert significant["in_single_trials"] == "counted, not tested"


@pytest.mark.parametrize(
    ("rate", "chance", "interval", "expected"),
    [
        (None, 0.5, (None, None), "not run"),
        (0.97, 0.5, (0.6, 1.0), "holds"),
        (0.9, None, (None, None), "holds"),
        (0.89, 0.5, (0.6, 1.0), "partly"),
        (0.97, 0.5, (0.5, 1.0), "inconclusive"),
        (0.05, 0.5, (0.0, 0.6), "inconclusive"),
        (0.3, 0.5, (0.2, 0.45), "fails"),
        (0.1, None, (None, None), "fails"),
        (0.31, 0.025, (None, None), "partly"),
    ],
)
def test_a_claim_fares_in_one_word(rate, chance, interval, expected):
    low, high = interval
    assert (
        status({"ours_rate": rate, "by_chance": chance, "trial_low": low, "trial_high": high})
        == expected
    )


FALLS = [
    cells(("ure", 80), ("relu", 80), ("abs", 80), n=2000),
    cells(("ure", 78), ("relu", 79), ("abs", 85), n=4000),
    cells(("ure", 85), ("relu", 78), ("abs", 82), n=6000),
]


LOST = cells(("ure", 78), ("relu", np.nan), ("abs", 85), n=4000)


STEADIER = "corrected-is-steadier-over-n"


def test_steadiness_over_n_compares_the_largest_falls():
    """URE falls by 2 once, ReLU by 1 twice, ABS by 3 once."""
    cases = CLAIMS[STEADIER].check(evidence(*FALLS)).set_index("method")
    assert cases["left"].to_dict() == {"relu": 1, "abs": 3}
    assert set(cases["right"]) == {2}
    assert cases["holds"].to_dict() == {"relu": True, "abs": False}


def test_steadiness_over_n_needs_two_sizes_and_no_mean_that_diverged():
    assert held(STEADIER, evidence(FALLS[0])) == []
    cases = CLAIMS[STEADIER].check(evidence(FALLS[0], LOST)).set_index("method")
    assert cases["holds"].to_dict() == {"abs": True, "relu": False}


GROWTH = [
    cells(("ure", 80), ("abs", 80), n=2000, std=0.5),
    cells(("ure", 81), ("abs", 85), n=6000, std=0.5),
    cells(("ure", 82), ("abs", 90), n=10000, std=0.5),
]


STEEPER = "corrected-grows-more-steeply"


SIGNIFICANTLY = "corrected-grows-significantly-more-steeply"


# Of least squares, in points per 1,000 tuples.
SLOPE_OF_URE = stats.linregress([2, 6, 10], [80, 81, 82]).slope


SLOPE_OF_ABS = stats.linregress([2, 6, 10], [80, 85, 90]).slope


def test_steeper_compares_slopes_of_least_squares():
    growth = evidence(*GROWTH)
    case = CLAIMS[STEEPER].check(growth).iloc[0]
    assert case["left"] == pytest.approx(SLOPE_OF_ABS)
    assert case["right"] == pytest.approx(SLOPE_OF_URE)
    assert case["holds"]


def test_steeper_needs_two_sizes():
    assert held(STEEPER, evidence(GROWTH[0])) == []


def test_steeper_is_significant_by_the_deviations_over_trials():
    """The variance of a slope of three equidistant means is 2 s^2 / (3 trials * 64), half of it
    from each end.
    """
    parts = np.full(4, 0.5**2 / 3 / 64)
    variance = parts.sum()
    freedom = variance**2 / (parts**2 / 2).sum()
    reach = stats.t.ppf(0.975, freedom) * variance**0.5

    growth = evidence(*GROWTH)
    case = CLAIMS[SIGNIFICANTLY].check(growth).iloc[0]

    assert case["left"] == pytest.approx(SLOPE_OF_ABS - SLOPE_OF_URE - reach)
    assert case["holds"]


def test_steeper_is_not_significant_under_noise():
    noisy = [frame.assign(std=10.0) for frame in GROWTH]
    assert held(SIGNIFICANTLY, evidence(*noisy)) == [False]


def test_single_trials_may_be_steeper_but_not_significantly():
    frames = [frame.assign(std=np.nan, trials=1) for frame in GROWTH]
    single = evidence(*frames)
    assert held(SIGNIFICANTLY, single) == []
    assert held(STEEPER, single) == [True]


ACCURACY = [50, 60, 70, 80, 90, 90, 85, 84, 80, 70]


RISK = np.array([1.0, 0.5, 0.1, 0.2, -0.1, 0.05, -0.3, -0.5, -0.9, -2.0])


def test_facts_of_a_run():
    epochs = history(accuracy=ACCURACY, risk=RISK, objective=abs(RISK))
    run = facts(epochs).iloc[0]
    assert run["best"] == pytest.approx((80 + 90 + 90 + 85 + 84) / 5)
    assert run["accuracy"] == pytest.approx(75)
    assert run["lowest_risk"] == -2.0
    assert run["lowest_objective"] == 0.05
    correlation = stats.spearmanr(RISK[4:], ACCURACY[4:]).statistic
    assert run["risk_and_accuracy"] == pytest.approx(correlation)


FALLING = history(
    accuracy=[60, 90, 90, 90, 90, 90, 80, 70], risk=[1, 0.5, 0.1, -0.1, -0.5, -1, -4, -9]
)
STEADY = history(
    "abs", accuracy=[60, 90, 90, 90, 90, 90, 90, 90], risk=[1, 0.5, 0.1, -0.1, 0, 0, 0, 0]
)
STEADY = STEADY.assign(objective=STEADY["risk"].abs())
BROKEN = STEADY.assign(accuracy=STEADY["accuracy"].where(STEADY["epoch"] < 5))
SWAPPED = [FALLING.assign(method="abs"), STEADY.assign(method="ure", risk=1.0)]


@pytest.mark.parametrize(
    ("name", "histories", "outcome"),
    [
        ("ure-risk-goes-negative", [FALLING, STEADY], [True]),
        ("ure-risk-goes-negative", SWAPPED, [False]),
        ("ure-accuracy-falls-with-its-risk", [FALLING, STEADY], [True]),
        ("ure-accuracy-falls-with-its-risk", SWAPPED, []),
        ("ure-overfits", [FALLING, STEADY], [True]),
        ("ure-overfits", SWAPPED, []),
        ("weight-decay-does-not-help", [FALLING.assign(variant="decay 2e-3"), FALLING], [True]),
        ("weight-decay-does-not-help", [FALLING], []),
        ("corrected-objective-stays-non-negative", [FALLING, STEADY], [True]),
        ("corrected-objective-stays-non-negative", SWAPPED, [False]),
        ("corrected-accuracy-holds", [FALLING, STEADY], [True]),
        ("corrected-accuracy-holds", SWAPPED, [False]),
        ("corrected-accuracy-holds", [BROKEN], [False]),  # a run that diverged holds nothing
    ],
)
def test_a_claim_about_histories_holds_run_by_run(name, histories, outcome):
    assert held(name, evidence(cells(("ure", 80)), runs=facts(*histories))) == outcome


# Runs by dataset, training and method, and the accuracy of their last epoch; of the two before it
# is 90 and 50 %.
READ = [
    ("mnist", "base", "ure", 70),
    ("emnist-letters", "base", "ure", 72),
    ("emnist-letters-a-i", "base", "ure", 74),
    ("emnist-letters-a-i", "base", "relu", 76),
    ("emnist-letters-a-i", "base", "relu-part", 78),
    ("emnist-letters-a-i", "optimizer adamw", "ure", 80),
    ("emnist-letters-a-i", "optimizer adamw", "relu", 82),
    ("mnist", "base", "ure.hinge", 84),
]


@pytest.mark.parametrize(
    ("reading", "last"),
    [
        ({}, [70, 74, 76, 78, 80, 82, 84]),
        ({"letters": "all-26"}, [70, 72, 84]),
        ({"scope": "part"}, [70, 74, 78, 80, 84]),
        ({"loss": "hinge"}, [78, 84]),
        ({"optimizer": "adamw"}, [80, 82]),
        ({"optimizer": "adamw", "rate": "2e-5"}, []),
    ],
)
def test_a_reading_takes_its_own_runs_and_epochs(reading, last):
    config = load_config()
    rates = dict.fromkeys(("true_positive_rate", "true_negative_rate"), 0.5)
    metrics = [
        history(method, accuracy=[90, 50, end], risk=[1, 1, -1], variant=variant).assign(
            dataset=dataset, **rates
        )
        for dataset, variant, method, end in READ
    ]
    readings = Readings(config)
    for epochs, means in (
        ("last", last),
        ("all", [(140 + end) / 3 for end in last]),
        ("best", [90] * len(last)),
    ):
        own = readings.reading({**reading, "epochs": epochs})
        found = our_evidence(Plan(config), pd.concat(metrics, ignore_index=True), own)
        replaced = found.cells["variant"] == "protocol"
        assert sorted(found.cells.loc[~replaced, "mean"]) == pytest.approx(means)
    if "optimizer" in reading:
        assert set(found.cells["variant"]) <= {"base"}
    if "scope" in reading:
        assert "relu-part" not in set(found.cells["method"])
    for choice, count in ("scope", 1), ("loss", 3):
        assert replaced.sum() == len(found.every_loss) == count or choice not in reading


def test_claims_stand_side_by_side_under_readings():
    """ReLU beats URE as the protocol reads the runs, not as another does, and a third has no
    runs.
    """
    ours = evidence(cells(("ure", 80), ("relu", 81)))
    readings = {
        "other": evidence(cells(("ure", 80), ("relu", 79))),
        "none": evidence(cells(("ure", 80))),
    }
    table, _ = check_claims(ours, paper_evidence(RULE), readings)
    row = table.set_index("claim").loc["corrected-beats-ure"]
    assert row[["ours", "status"]].tolist() == ["1 of 1", "holds"]
    assert row[["other", "other_status"]].tolist() == ["0 of 1", "fails"]
    assert row[["none", "none_status"]].tolist() == ["not run", "not run"]
