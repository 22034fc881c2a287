"""What the figures show: the right means, bands, panels and marks, drawn the same each time."""

import re

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sympy
import torch
from contrast import contrast
from labels import is_shown, touching
from matplotlib.text import Text

from mdpu.law import Law
from mdpu.losses import LOSSES
from mdpu.pipeline.config import load_config
from mdpu.pipeline.evaluate.comparison import Trials, welch_interval
from mdpu.pipeline.evaluate.published import missing_datasets
from mdpu.pipeline.files import resource
from mdpu.pipeline.plan import Plan, Run
from mdpu.pipeline.report.drawing import COLUMN, PAGE, save_figure
from mdpu.pipeline.report.html import DARK
from mdpu.pipeline.report.style import LOSS_STYLES
from mdpu.pipeline.show import load_kind
from mdpu.pipeline.show.curves import curves_figure
from mdpu.pipeline.show.laws import law_cells, laws_figure
from mdpu.pipeline.show.line import line_figure
from mdpu.pipeline.show.loss import loss_figure
from mdpu.pipeline.show.losses import losses_figure
from mdpu.pipeline.show.setting import setting_figure, setting_parts

DATASETS = {"mnist": "MNIST", "svhn": "SVHN"}
METHODS = ["ure", "abs"]
TABLE_I = {name: loss for name, loss in LOSSES.items() if loss.in_table}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def accuracies(ns=(10000,), losses=("logistic",), methods=METHODS, sizes=(2, 3)) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    runs = [
        Run(dataset, "base", size, n, "0.5", method, loss, seed)
        for dataset in DATASETS
        for size in sizes
        for n in ns
        for method in methods
        for loss in losses
        for seed in (1, 2, 3)
    ]
    return pd.DataFrame([{**vars(run), "accuracy": rng.uniform(50, 90)} for run in runs])


def histories(methods=METHODS, epochs=5) -> pd.DataFrame:
    table = accuracies(methods=methods)
    frames = [
        table.assign(epoch=epoch, risk=table["accuracy"] / 100, accuracy=table["accuracy"] / 100)
        for epoch in range(1, epochs + 1)
    ]
    return pd.concat(frames, ignore_index=True)


ALL = ["ure", "relu", "abs", "relu-part", "bag-relu", "bag-free", "supervised"]
SIDES = np.tile(np.array([1, -1], dtype=np.int8), 100)


def wrong_priors() -> pd.DataFrame:
    """The assumed prior is off by 0.2 in the first trial, right in the second, and so on."""
    return accuracies(methods=ALL).assign(
        prior_offset=lambda rows: rows["seed"].map({1: -0.2, 2: 0.0, 3: 0.2})
    )


def setting(tuple_size):
    images = np.random.default_rng(0).integers(0, 256, (len(SIDES), 6, 6), dtype=np.uint8)
    return setting_figure(images, setting_parts(SIDES, tuple_size, 0.5, 60), "Noise")


def named_lines(axis):
    return {line.get_label(): line for line in axis.lines}


def test_accuracy_against_n_has_a_panel_per_dataset_and_tuple_size():
    table = accuracies(ns=(2000, 4000, 12000))
    axes = line_figure(table, DATASETS, "n").axes
    assert [axis.get_title().split(",")[0] for axis in axes] == ["MNIST", "SVHN"] * 2
    assert ["pairs" in axis.get_title() for axis in axes] == [True, True, False, False]
    chosen = table[
        (table["dataset"] == "svhn") & (table["tuple_size"] == 3) & (table["method"] == "abs")
    ]
    by_n = chosen.groupby("n")["accuracy"]
    line = named_lines(axes[3])["ABS"]
    assert list(line.get_xdata()) == [2000, 4000, 12000]
    np.testing.assert_allclose(line.get_ydata(), by_n.mean())
    band = axes[3].collections[METHODS.index("abs")].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx((by_n.mean() + by_n.std()).max())
    assert band[:, 1].min() == pytest.approx((by_n.mean() - by_n.std()).min())


def shown_texts(figure):
    return [text.get_text().replace("\n", " ") for text in figure.findobj(Text) if text.get_text()]


def test_the_axis_of_accuracy_against_n_holds_the_whole_bands():
    """Also where one trial lies far from the others."""
    table = accuracies(ns=(2000, 4000), sizes=(2,)).query("dataset == 'mnist'")
    table["accuracy"] = table["accuracy"].where(table["seed"] > 1, 10.0)
    (axis,) = line_figure(table, {"mnist": "MNIST"}, "n").axes
    bottom, top = axis.get_ylim()
    for band in axis.collections:
        heights = band.get_paths()[0].vertices[:, 1]
        assert bottom < heights.min() < heights.max() < top


def test_the_curves_fill_their_panel_and_a_control_far_above_is_named_over_it():
    table = histories(methods=["ure", "supervised"], epochs=50).query(
        "dataset == 'mnist' and tuple_size == 2"
    )
    trial = 0.80 + 0.01 * table["seed"]
    table["accuracy"] = np.where(table["method"] == "supervised", 0.98, trial)
    figure = curves_figure(table, {"mnist": "MNIST"})
    bottom, top = figure.axes[1].get_ylim()
    assert 80 < bottom < 81 < 83 < top < 84
    assert "Supervised 98.0 ↑" in shown_texts(figure)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["URE"]


def test_the_caption_of_losses_says_that_the_printed_ramp_learns_nothing():
    plan = Plan(load_config([resource("config/reference.yaml")]))
    said = {
        name: load_kind("loss").caption(plan.experiments[name])
        for name in ("figure5", "figure5-usual-ramp")
    }
    assert "nothing is" in said["figure5"]
    assert "nothing is" not in said["figure5-usual-ramp"]


@pytest.mark.parametrize(
    ("name", "figure", "lacks"), [("quick", "quick-curves", 0), ("reference", "figure3", 2)]
)
def test_only_below_a_figure_on_the_papers_images_stand_those_that_it_lacks(name, figure, lacks):
    plan = Plan(load_config([resource(f"config/{name}.yaml")]))
    assert len(missing_datasets(plan, plan.experiments[figure])) == lacks


def test_curves_are_running_means_of_each_trial_and_of_all_and_the_legend_has_what_is_drawn():
    noisy = histories(methods=["ure", "chance"], epochs=100).query("dataset == 'mnist'")
    noise = 0.1 * np.random.default_rng(0).random(len(noisy))
    noisy["accuracy"] = np.where(noisy["method"] == "chance", 0.1, 0.8 + noise)
    figure = curves_figure(noisy, {"mnist": "MNIST"})
    line = named_lines(figure.axes[2])["URE"]
    own = noisy.query("dataset == 'mnist' and tuple_size == 2 and method == 'ure'")
    by_epoch = own.pivot(index="epoch", columns="seed", values="accuracy")
    expected = 100 * by_epoch.rolling(9, center=True, min_periods=1).mean().mean(axis=1)
    np.testing.assert_allclose(line.get_ydata(), expected.loc[line.get_xdata()])
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["URE"]
    assert "Chance 10.0 ↓" in shown_texts(figure)


def test_accuracy_along_the_size_of_tuples_names_n_and_draws_controls_without_a_band():
    (axis,) = line_figure(
        accuracies(methods=["abs", "supervised"]), {"mnist": "MNIST"}, "tuple_size"
    ).axes
    assert axis.get_title() == "MNIST, $n$ = 10,000, $\\pi_+ = 0.5$"
    assert list(named_lines(axis)["Supervised"].get_xdata()) == [2, 3]
    assert len(axis.collections) == 1


def test_losses_stand_side_by_side_in_a_panel_per_method_and_tuple_size():
    table = accuracies(losses=tuple(LOSS_STYLES))
    axes = loss_figure(table, DATASETS).axes
    assert [axis.get_title().split(",")[0] for axis in axes] == ["URE", "ABS"] * 2
    places = {}
    for container in axes[1].containers:
        points, _, (bars,) = container
        loss = next(name for name, known in LOSSES.items() if known.title == container.get_label())
        chosen = table[
            (table["loss"] == loss) & (table["tuple_size"] == 2) & (table["method"] == "abs")
        ]
        by_dataset = chosen.groupby("dataset")["accuracy"]
        np.testing.assert_allclose(np.asarray(points.get_xdata(), float), by_dataset.mean())
        spread = [(segment[1, 0] - segment[0, 0]) / 2 for segment in bars.get_segments()]
        np.testing.assert_allclose(spread, by_dataset.std())
        places[loss] = np.asarray(points.get_ydata(), float)
    assert list(places) == list(LOSS_STYLES)
    # A dataset's points lie nearer to each other than to the next dataset's.
    heights = np.array(list(places.values()))
    assert (np.ptp(heights, axis=0) < 0.5).all()
    assert np.allclose(heights.mean(axis=0), [0, -1])


def plain(formula: str) -> str:
    """Return a formula of Table I in sympy's words."""
    words = {r"\log": "log", r"\exp": "exp", r"\min": "Min", r"\max": "Max", "^": "**", "tz": "t*z"}
    text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"((\1)/(\2))*", formula).removesuffix("*")
    for latex, word in words.items():
        text = text.replace(latex, word)
    assert "\\" not in text, text
    return text


@pytest.mark.parametrize("name", LOSSES)
def test_a_written_formula_is_the_function_beside_it(name):
    formula = sympy.sympify(plain(LOSSES[name].formula))
    scores = np.linspace(-3, 3, 61)
    for label in (1, -1):
        written = [float(formula.subs({"t": label, "z": score})) for score in scores]
        computed = LOSSES[name](torch.tensor(scores), label)
        np.testing.assert_allclose(computed, written, atol=1e-12)


def test_the_figure_of_losses_draws_the_code_and_shows_ramps_dead_gradient():
    positive, negative, slope = losses_figure().axes
    for name, loss in TABLE_I.items():
        for axis, label in ((positive, 1), (negative, -1)):
            line = named_lines(axis)[loss.title]
            np.testing.assert_allclose(
                line.get_ydata(), loss(torch.tensor(line.get_xdata()), label), err_msg=name
            )
    slopes = {
        title: (line.get_xdata(), line.get_ydata()) for title, line in named_lines(slope).items()
    }
    misclassified = slopes["Ramp"][0] < 0
    inside = (slopes["Ramp"][0] > 0) & (slopes["Ramp"][0] < 1)
    assert (slopes["Ramp"][1][misclassified] == 0).all()
    assert (slopes["Ramp"][1][inside] == -1).all()
    assert (slopes["Hinge"][1][misclassified] == -1).all()


@pytest.mark.parametrize("tuple_size", [2, 3, 5])
def test_what_the_setting_says_of_its_images_is_true(tuple_size):
    parts = setting_parts(SIDES, tuple_size, 0.5, 100)
    assert list(parts) == ["MDPU", "PU", "LLP", "SU", "UU"]
    for group in parts["MDPU"][:2]:
        assert len(group.images) == tuple_size
        assert SIDES[group.images].sum() >= 0
    assert (SIDES[parts["PU"][0].images] == 1).all()
    for bag in parts["LLP"]:
        assert (
            bag.known.split()
            == f"{(SIDES[bag.images] == 1).sum()} of {tuple_size} positive".split()
        )
    assert [set(SIDES[pair.images]) for pair in parts["SU"][:2]] == [{1}, {-1}]
    for own in parts["UU"]:
        assert (SIDES[own.images] == 1).mean() == pytest.approx(
            float(own.known.removeprefix("prior "))
        )


LAWS = {
    ("dominant", 3): Law.dominant(3),
    ("exactly-1", 3): Law.exactly(3, 1),
    ("similar", 2): Law.similar(2),
}


def cells_of_laws(
    methods=("ure", "bag-em", "bag-relu", "supervised"), diverged: int = 0
) -> pd.DataFrame:
    """At 1/2 similar pairs name no class and have no risk of members; their second trial of three
    ends swapped.
    """
    reached = {"ure": 80.0, "bag-em": 90.0, "bag-relu": 95.0, "supervised": 97.0}
    rows = [
        {
            **vars(Run(dataset, "base", size, 100, prior, method, "logistic", seed, law)),
            "accuracy": accuracy,
        }
        for dataset in DATASETS
        for (law, size), prior in zip(LAWS, ("0.4", "0.4", "0.5"), strict=True)
        for method in methods
        for seed in (1, 2, 3)
        for accuracy in [reached[method] + seed - (size == 3 and method == "bag-em") * 70]
        if (prior, method) != ("0.5", "ure")
    ]
    table = pd.DataFrame(rows).assign(first_epoch=1, last_epoch=5)
    lost = (table["method"] == "bag-relu") & (table["seed"] == diverged)
    table["accuracy"] = table["accuracy"].mask(lost)
    swapped = (table["law"] == "similar") & (table["seed"] == 2)
    return law_cells(
        table.assign(accuracy=table["accuracy"].mask(swapped, 100 - table["accuracy"])), LAWS, 0.95
    )


def test_cells_of_laws_have_intervals_information_and_the_lead_of_bag_relu():
    cells = cells_of_laws().query("dataset == 'mnist'").set_index(["law", "method"])
    shown = cells.loc[("dominant", "ure")]
    assert (shown["mean"], shown["family"], shown["above"]) == (82.0, "marginal", 15.0)
    # t, two degrees of freedom
    assert shown["high"] - 82 == 82 - shown["low"] == pytest.approx(4.302653 / 3**0.5)
    assert shown["above_high"] - 15 == pytest.approx(2.776445 * (2 / 3) ** 0.5)  # Welch's, four
    assert (shown["joint"], shown["marginal"]) == pytest.approx((1.044, 0.659), abs=1e-3)
    assert cells.loc[("similar", "supervised"), "mean"] == 99.0
    fewer = (
        cells_of_laws(diverged=3)
        .query("dataset == 'mnist' and law == 'dominant' and method == 'ure'")
        .iloc[0]
    )
    ends = welch_interval(Trials(96.5, 0.5**0.5, 2), Trials(82.0, 1.0, 3), 0.95)
    assert (fewer["above_low"], fewer["above_high"]) == pytest.approx(ends)
    assert cells.loc[("similar", "supervised"), "marginal"] == pytest.approx(0, abs=1e-9)


def test_settings_of_laws_stand_by_the_gain_of_the_joint_law_those_without_a_risk_of_members_last():
    axis = laws_figure(cells_of_laws(), DATASETS).axes[0]
    titles = [text.get_text() for text in axis.get_yticklabels()]
    assert titles == ["dominant triples", "exactly 1 of 3", "similar pairs, $\\pi_+ = 0.5$"]
    edge = {line.get_label(): line.get_xdata() for line in axis.lines}
    assert sorted(edge["Bag EM"]) == [50, 50, 92]  # swapped classes lie beyond the left edge
    assert sorted(edge["URE"]) == [82, 82]


FIGURES = {
    "line": lambda: line_figure(accuracies(ns=(10, 20)), DATASETS, "n"),
    "line of offsets": lambda: line_figure(wrong_priors(), DATASETS, "prior_offset"),
    "loss": lambda: loss_figure(accuracies(losses=("logistic", "ramp")), DATASETS),
    "laws": lambda: laws_figure(cells_of_laws(), DATASETS),
    "losses": losses_figure,
    "curves": lambda: curves_figure(histories(), DATASETS),
    "setting": lambda: setting(5),
    "curves and controls": lambda: curves_figure(
        histories(methods=["ure", "supervised", "chance"]), DATASETS
    ),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_fits_a_paper_and_its_labels_can_be_read(name, tmp_path):
    """A column or a page wide, not higher than a page, 8 pt, and no label touches another or leaves
    the figure.

    What is seen on paper is seen in the dark too.
    """
    figure = FIGURES[name]()
    assert touching(figure) == []
    width, height = figure.get_size_inches()
    assert width in (COLUMN, PAGE)
    assert height <= 9.0
    assert {text.get_fontsize() for text in figure.findobj(Text) if is_shown(text, figure)} <= {
        7,
        8,
    }
    save_figure(figure, tmp_path / "figure.svg", tmp_path / "figure.pdf")
    for colour in set(
        re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", (tmp_path / "figure.svg").read_text())
    ):
        dark = DARK.get(colour, colour)
        seen = contrast(colour, "#ffffff") >= 3
        assert not seen or contrast(dark, DARK["#ffffff"]) >= 3, colour


def test_a_figure_is_the_same_files_each_time_whatever_a_users_defaults(tmp_path):
    def save(name):
        files = [tmp_path / f"{name}.svg", tmp_path / f"{name}.pdf"]
        save_figure(FIGURES["curves"](), *files)
        return [file.read_bytes() for file in files]

    first = save("first")
    with plt.rc_context({"font.size": 20, "axes.facecolor": "pink"}):
        assert save("second") == first
    assert [content[:4] for content in first] == [b"<?xm", b"%PDF"]
