"""The paper's numbers under every reading: which runs count, statistics, counts of verdicts, the
best reading.
"""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from mdpu.pipeline.config import as_yaml, from_snakemake, load_config
from mdpu.pipeline.evaluate.choices import Readings
from mdpu.pipeline.evaluate.comparison import DIFFERS, NOT_RUN
from mdpu.pipeline.evaluate.panel import Panel, verdicts
from mdpu.pipeline.evaluate.published import published_cells
from mdpu.pipeline.evaluate.rejudge import (
    counts,
    is_compared,
    judged_trials,
    most_probable,
    places_tried,
    shown_runs,
    statistics,
)
from mdpu.pipeline.job import asked
from mdpu.pipeline.plan import Plan
from mdpu.pipeline.report.specification import specification_columns, specification_figure
from mdpu.pipeline.store import Stored

CONFIG = load_config()
READINGS = Readings(CONFIG)
RULE = CONFIG["comparison"]


def plan_of(**values):
    usual = {"datasets": "[mnist]", "experiments": "[table2]"}
    return Plan(from_snakemake(as_yaml(usual | values)))


def test_a_plan_is_judged_under_readings_if_it_runs_numbers_of_the_paper_by_the_protocol():
    assert is_compared(plan_of())
    assert not is_compared(plan_of(protocol="{reporting: {average_last: 5}}"))
    assert not is_compared(plan_of(protocol="{training: {prior_offset: 0.02}}"))
    siamese = "{experiments: {table2: {method: [siamese]}}}"
    assert not is_compared(plan_of(definitions=siamese))
    assert not is_compared(plan_of(experiments="[figure4]", axes="{loss: [hinge]}"))


FEW = """{
    experiments: {table2: {method: [ure], prior: [0.5]}},
    variants: {open: {sampling: {replacement: false}}},
}"""


def runs_of(plan):
    """Return finished runs of a plan, whose accuracy rises from 50 to 90 %."""
    accuracy = np.linspace(0.5, 0.9, 100)
    history = pd.DataFrame({"epoch": np.arange(1, 101), "objective": 0.0})
    for rate in ("accuracy", "true_positive_rate", "true_negative_rate"):
        history[rate] = accuracy
    finished = []
    for run in plan.runs:
        spec = plan.spec(run.cell)
        finished.append(Stored.of(asked(spec, run.seed), history, precision="float32"))
    return finished


def test_of_a_plans_own_cells_its_seeds_count_and_all_of_other_trainings():
    four = "{{seed: [1, 2, 3, 4], variant: [{}]}}"
    runs = runs_of(plan_of(definitions=FEW, axes=four.format("base")))
    runs += runs_of(plan_of(definitions=FEW, axes=four.format("open")))
    three = plan_of(definitions=FEW, axes="{seed: [1, 2, 3]}")

    trials = judged_trials(three, READINGS, READINGS.read_trials(runs))

    rows = statistics(trials).set_index(["variant", "epochs"])
    counts = rows["trials"].groupby("variant").first()
    assert counts.to_dict() == {"protocol": 3, "replacement without": 4}
    assert rows.loc["protocol", "mean"].to_dict() == {
        "last-ten": pytest.approx(100 * np.linspace(0.5, 0.9, 100)[-10:].mean(), abs=1e-4),
        "all": pytest.approx(70),
        "last": 90,
        "best": 90,
    }


def test_without_a_run_of_any_reading_there_are_no_statistics():
    trials = READINGS.read_trials([])
    rows = statistics(judged_trials(plan_of(definitions=FEW), READINGS, trials))
    assert rows.empty


def test_a_plans_own_run_counts_and_of_other_runs_that_in_float32():
    plan = plan_of(definitions=FEW, axes="{seed: [1]}")
    (exact,) = runs_of(plan)
    lower = Stored("lower", exact.history, {**exact.about, "precision": "bfloat16"})
    (other,) = READINGS.find_runs([lower, exact]).values()
    assert other is exact
    (own,) = READINGS.find_runs([exact, lower], own=["lower"]).values()
    assert own is lower


def test_a_trial_has_the_accuracy_that_the_protocol_reports():
    definitions = "{experiments: {table2: {method: [ure, kmeans], prior: [0.4]}}}"
    matched = plan_of(
        definitions=definitions,
        axes="{seed: [1]}",
        protocol="{reporting: {test_prior: matched}}",
    )
    readings = Readings(matched.config)
    methods = ["ure", "kmeans"]
    runs = readings.find_runs(map(with_bad_rates, runs_of(matched)), methods)
    trials = readings.read_trials(runs.values(), methods)
    shown = shown_runs(trials, runs, "matched")["protocol"]
    prior = 0.4
    accuracy = 100 * (prior * 0.1 + (1 - prior) * 0.2)
    for method, expected in (("ure", accuracy), ("kmeans", 100 - accuracy)):
        assert set(trials.query("method == @method")["accuracy"].round(6)) == {expected}
        ((run,),) = [runs for name, runs in shown.items() if name.endswith(f"/{method}")]
        assert set(run["curve"]) == {round(expected, 1)}


def with_bad_rates(run):
    """Return a run with true rates of 0.1 and 0.2 in each epoch."""
    history = run.history.assign(true_positive_rate=0.1, true_negative_rate=0.2)
    return Stored(run.key, history, run.about)


def panel(gaps, seeds=5):
    """Return a panel of MNIST's 36 numbers: what was published plus a gap of each reading, and
    noise of its own.
    """
    random = np.random.default_rng(0)
    of_mnist = "method in ['ure', 'relu', 'abs'] and dataset == 'mnist'"
    cells = published_cells().query(of_mnist).reset_index(drop=True)
    means = cells["published_mean"].to_numpy()[:, None]
    stds = cells["published_std"].to_numpy()[:, None]
    noise = stds * random.standard_normal((len(cells), seeds))
    readings = [READINGS.reading(dict(departures)) for departures in gaps]
    trials = [means + gap + noise for gap in gaps.values()]
    return Panel(readings, cells, np.array(trials))


GAPS = {
    (): 9.0,
    (("epochs", "all"),): 0.0,
    (("epochs", "last"),): 9.0,
    (("epochs", "best"),): 12.0,
}
WITHOUT = {(("replacement", "without"),): 0.3}


def test_verdicts_are_counted_on_the_numbers_that_all_values_of_a_choice_cover():
    partly_run = panel({**GAPS, **WITHOUT})
    partly_run.trials[-1, 20:] = np.nan
    rows = counts(partly_run, READINGS, RULE)
    numbers = [(row["choice"], row["reading"][row["choice"]], row["numbers"]) for row in rows]
    assert numbers == [
        ("epochs", "last-ten", 36),
        ("epochs", "all", 36),
        ("epochs", "last", 36),
        ("epochs", "best", 36),
        ("replacement", "with", 20),
        ("replacement", "without", 20),
    ]
    last_ten, every, *_ = rows
    assert last_ten["differs"] == 36
    assert every["differs"] == 0
    assert every["reproduced"] + every["close"] + every["inconclusive"] == 36
    assert places_tried(partly_run) == [0, 1, 3, 4]  # the last epoch has the trials of the protocol


def test_the_best_reading_is_the_one_whose_trials_are_the_papers():
    three = panel(GAPS, seeds=3)
    five = panel(GAPS)
    found = most_probable(three, five, READINGS, RULE)
    assert READINGS.name(found["reading"]) == "epochs all"
    assert found["posterior"] > 0.5 > found["protocol"]
    assert found["numbers"] == 36
    assert most_probable(panel(GAPS, seeds=2), five, READINGS, RULE) is None
    assert most_probable(three, three, READINGS, RULE) is None


def test_no_reading_is_the_best_where_too_few_seeds_are_those_of_all():
    trials = panel(GAPS, seeds=10).trials
    trials[0, :, :5] = np.nan
    trials[1:, :, 6:] = np.nan
    apart = replace(panel(GAPS), trials=trials)
    assert most_probable(apart, panel(GAPS), READINGS, RULE) is None
    assert most_probable(panel(GAPS, seeds=3), apart, READINGS, RULE) is None


def test_the_specification_curve_has_a_column_for_each_reading_and_a_row_for_each_number():
    figure = specification_figure(panel({**GAPS, **WITHOUT}), READINGS, RULE)
    upper, middle, lower = figure.axes
    assert middle.images[0].get_array().shape == (36, 4, 4)
    medians = list(upper.lines[0].get_ydata())
    assert medians == sorted(medians)
    names = [text.get_text() for text in lower.get_yticklabels()]
    assert names == ["all epochs", "best epoch, by test labels", "without replacement"]


def test_the_columns_of_the_specification_curve_say_how_many_trials_they_have():
    of_five = panel(GAPS)
    of_five.trials[0, 0, 3:] = np.nan  # one number of one reading has three
    columns = specification_columns(of_five, READINGS, RULE).set_index("reading")
    fewest = columns["fewest_trials"]
    assert fewest.pop(READINGS.name(of_five.readings[0])) == 3
    assert (fewest == 5).all()
    assert (columns["most_trials"] == 5).all()


@pytest.mark.parametrize("accuracies", [[90.0, 91.0, 92.0], [np.nan] * 3])
def test_the_specification_curve_is_drawn_for_one_number_even_if_its_runs_diverged(accuracies):
    whole = panel(GAPS)
    trials = np.tile(accuracies, (len(GAPS), 1, 1))
    single = Panel(whole.readings, whole.cells[:1], trials)
    middle = specification_figure(single, READINGS, RULE).axes[1]
    image = middle.images[0].get_array()
    assert image.shape[:2] == (1, 1)


@pytest.mark.parametrize(("accuracy", "verdict"), [(np.nan, NOT_RUN), (np.inf, DIFFERS)])
def test_a_trial_that_diverged_differs_and_one_that_is_missing_was_not_run(accuracy, verdict):
    whole = panel(GAPS)
    trials = np.full_like(whole.trials, accuracy)
    judged = verdicts(Panel(whole.readings, whole.cells, trials), RULE)
    assert {*judged.flat} == {verdict}
