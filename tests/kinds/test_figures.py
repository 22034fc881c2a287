"""What the figures show: the right means, bands, panels and marks, drawn the same each time."""

from __future__ import annotations

import re
import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import sympy
import torch
from matplotlib.patches import Rectangle

from mdpu.data.images import ImageSet
from mdpu.data.splits import draw_split
from mdpu.errors import UserError
from mdpu.kinds.curves import curves_figure
from mdpu.kinds.formulas import formula_image, loss_rows, markdown_formulas
from mdpu.kinds.loss import loss_figure
from mdpu.kinds.losses import losses_figure
from mdpu.kinds.setting import setting_figure, setting_rows
from mdpu.kinds.size import size_figure
from mdpu.learn.losses import LOSSES
from mdpu.report.drawing import in_order, save_figure
from mdpu.report.style import LOSS_STYLES
from mdpu.report.tuning_figure import tuning_figure
from mdpu.study.grid import Experiment, Run, run_columns

DATASETS = {"mnist": "MNIST", "svhn": "SVHN"}
METHODS = ["ure", "abs"]


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
    return pd.DataFrame([{**run_columns(run), "accuracy": rng.uniform(50, 90)} for run in runs])


def named_lines(axis):
    return {line.get_label(): line for line in axis.lines}


# -- accuracy against n ---------------------------------------------------------------------------


def test_accuracy_against_n_has_a_panel_per_dataset_and_tuple_size():
    table = accuracies(ns=(2000, 4000, 12000))
    axes = size_figure(table, DATASETS).axes
    assert [axis.get_title().split(",")[0] for axis in axes] == ["MNIST", "SVHN"] * 2
    assert ["pairs" in axis.get_title() for axis in axes] == [True, True, False, False]
    chosen = table[(table["dataset"] == "svhn") & (table["tuple_size"] == 3) & (table["method"] == "abs")]
    by_n = chosen.groupby("n")["accuracy"]
    line = named_lines(axes[3])["ABS"]
    assert list(line.get_xdata()) == [2000, 4000, 12000]
    np.testing.assert_allclose(line.get_ydata(), by_n.mean())
    band = axes[3].collections[METHODS.index("abs")].get_paths()[0].vertices
    assert band[:, 1].max() == pytest.approx((by_n.mean() + by_n.std()).max())
    assert band[:, 1].min() == pytest.approx((by_n.mean() - by_n.std()).min())


def test_controls_are_lines_without_a_band_against_n():
    axis = size_figure(accuracies(ns=(10, 20), methods=["ure", "supervised"]), DATASETS).axes[0]
    assert set(named_lines(axis)) == {"URE", "Supervised"}
    assert len(axis.collections) == 1


def test_methods_keep_the_order_of_the_experiment():
    table = accuracies(methods=["abs", "relu", "ure"])
    runs = tuple(Run("mnist", "base", 2, 10000, "0.5", method, "logistic", 1) for method in ("ure", "relu", "abs"))
    assert list(dict.fromkeys(in_order(table, Experiment("x", "size", "X", runs))["method"])) == ["ure", "relu", "abs"]


# -- accuracy with each loss ----------------------------------------------------------------------


def test_losses_stand_side_by_side_in_a_panel_per_method_and_tuple_size():
    table = accuracies(losses=tuple(LOSS_STYLES))
    axes = loss_figure(table, DATASETS).axes
    assert [axis.get_title().split(",")[0] for axis in axes] == ["URE", "ABS"] * 2
    places = {}
    for container in axes[1].containers:
        points, _, (bars,) = container
        loss = next(name for name, known in LOSSES.items() if known.title == container.get_label())
        chosen = table[(table["loss"] == loss) & (table["tuple_size"] == 2) & (table["method"] == "abs")]
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


def test_a_cell_without_a_trial_left_is_said_to_have_diverged():
    table = accuracies(losses=("logistic", "squared"))
    gone = (table["loss"] == "squared") & (table["dataset"] == "svhn") & (table["method"] == "ure")
    table.loc[gone, "accuracy"] = np.nan
    axes = loss_figure(table, DATASETS).axes
    assert [[text.get_text() for text in axis.texts] for axis in axes] == [["Squared diverged"], []] * 2


# -- the losses themselves ------------------------------------------------------------------------


def plain(formula: str) -> str:
    """Return a formula of Table I in sympy's words."""
    words = {r"\log": "log", r"\exp": "exp", r"\min": "Min", r"\max": "Max", "^": "**", "tz": "t*z"}
    text = re.sub(r"\\frac\{(\d)\}\{(\d)\}", r"(\1/\2)*", formula)
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


def test_table_one_has_every_loss_with_its_formula():
    rows = loss_rows()
    assert list(rows["loss"]) == list(LOSSES)
    text = markdown_formulas(rows, "Table I")
    assert all(f"${loss.formula}$" in text for loss in LOSSES.values())
    images = [formula_image(formula) for formula in rows["formula"]]
    assert len(set(images)) == len(images)
    assert images == [formula_image(formula) for formula in rows["formula"]]


def test_the_figure_of_losses_draws_the_code_and_shows_ramps_dead_gradient():
    positive, negative, slope = losses_figure().axes
    for name, loss in LOSSES.items():
        for axis, label in ((positive, 1), (negative, -1)):
            line = named_lines(axis)[loss.title]
            np.testing.assert_allclose(line.get_ydata(), loss(torch.tensor(line.get_xdata()), label), err_msg=name)
    slopes = {title: (line.get_xdata(), line.get_ydata()) for title, line in named_lines(slope).items()}
    misclassified, inside = slopes["Ramp"][0] < 0, (slopes["Ramp"][0] > 0) & (slopes["Ramp"][0] < 1)
    assert (slopes["Ramp"][1][misclassified] == 0).all()
    assert (slopes["Ramp"][1][inside] == -1).all()
    assert (slopes["Hinge"][1][misclassified] == -1).all()


# -- the setting ----------------------------------------------------------------------------------


@pytest.fixture
def labels():
    return np.tile(np.array([1, -1], dtype=np.int8), 100)


@pytest.mark.parametrize("tuple_size", [2, 3, 5])
def test_what_the_setting_says_of_its_images_is_true(labels, tuple_size):
    split = draw_split(labels, tuple_size, 0.5, 100, 100, 1)
    rows = {row.name: row for row in setting_rows(labels, split)}
    assert list(rows) == ["MDPU", "PU", "LLP", "SU", "UU"]
    drawn = {tuple(members) for members in split.tuples.tolist()}
    for members, _ in rows["MDPU"].groups:
        assert tuple(members) in drawn
        assert labels[members].sum() >= 0
    assert (labels[rows["PU"].singles] == 1).all()
    for bag, note in rows["LLP"].groups:
        assert note == f"{(labels[bag] == 1).sum()} of {tuple_size} positive"
    sides = [set(labels[pair]) for pair, _ in rows["SU"].groups]
    assert sides == [{1}, {-1}]
    for images, note in rows["UU"].groups:
        assert (labels[images] == 1).mean() == pytest.approx(float(note.removeprefix("prior ")))
    for name in ("MDPU", "PU", "SU"):
        assert set(rows[name].unlabeled) <= set(split.unlabeled)


@pytest.mark.parametrize("channels", [(), (3,), (2,)], ids=["grey", "colour", "two channels"])
def test_the_setting_is_drawn_of_any_images_with_frames_for_what_is_known(labels, channels, tmp_path):
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (200, 6, 6, *channels), dtype=np.uint8)
    classes = (labels < 0).astype(np.int64)
    image_set = ImageSet(images, classes, images, classes, ["even", "odd"], "here", "none")
    split = draw_split(labels, 3, 0.5, 60, 60, 1)
    definition = {"title": "Noise", "positive": ["even"], "negative": ["odd"]}
    figure = setting_figure(image_set, {"train": labels, "test": labels}, split, definition)
    (axis,) = figure.axes
    texts = [text.get_text() for text in axis.texts]
    assert {"Noise", "positive: even", "negative: odd", "MDPU", "half or more positive"} <= set(texts)
    rows = setting_rows(labels, split)
    shown = sum(sum(len(members) for members, _ in row.groups) + len(row.singles) + len(row.unlabeled) for row in rows)
    assert len(axis.images) == shown
    canvas = figure.get_window_extent()
    figure.canvas.draw()
    for text in axis.texts:
        box = text.get_window_extent()
        assert canvas.x0 <= box.x0 and box.x1 <= canvas.x1 and canvas.y0 <= box.y0 and box.y1 <= canvas.y1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(figure, tmp_path / "first.svg")
        save_figure(setting_figure(image_set, {"train": labels, "test": labels}, split, definition), tmp_path / "b.svg")
    assert (tmp_path / "first.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_a_split_too_small_for_the_setting_is_refused(labels):
    with pytest.raises(UserError, match="give its experiment a larger n"):
        setting_rows(labels, draw_split(labels, 2, 0.5, 5, 5, 1))


# -- tuning ---------------------------------------------------------------------------------------


def grid() -> pd.DataFrame:
    rows = [
        {"method": method, "learning_rate": rate, "weight_decay": decay, "estimated_error": 0.1 + 100 * rate + decay}
        for method in METHODS
        for rate in (2e-5, 1e-3)
        for decay in (5e-4, 2e-3)
    ]
    table = pd.DataFrame(rows)
    table.loc[0, "estimated_error"] = np.nan
    table["chosen"] = table.index.isin([1, 6])
    return table


def test_the_tuning_figure_writes_every_estimate_and_frames_the_chosen_ones():
    table = grid()
    axes = tuning_figure(table, "MNIST, M = 2").axes
    assert [axis.get_title() for axis in axes] == ["URE", "ABS"]
    rates, decays = sorted(table["learning_rate"].unique()), sorted(table["weight_decay"].unique())
    for axis, method in zip(axes, METHODS, strict=True):
        written = {text.get_position(): text.get_text() for text in axis.texts}
        method_rows = table[table["method"] == method]
        for point in method_rows.itertuples():
            text = written[rates.index(point.learning_rate), decays.index(point.weight_decay)]
            expected = "–" if np.isnan(point.estimated_error) else f"{100 * point.estimated_error:.1f}"
            assert text == expected
        (frame,) = [patch for patch in axis.patches if isinstance(patch, Rectangle)]
        (chosen,) = method_rows[method_rows["chosen"]].itertuples()
        assert frame.get_xy() == (rates.index(chosen.learning_rate) - 0.5, decays.index(chosen.weight_decay) - 0.5)


# -- curves ---------------------------------------------------------------------------------------


def test_curves_of_several_datasets_have_rows_per_tuple_size():
    table = accuracies()
    epochs = pd.concat([table.assign(epoch=epoch, risk=0.1, accuracy=0.5) for epoch in (1, 2)])
    axes = curves_figure(epochs, DATASETS).axes
    titles = [axis.get_title().split("\n")[0] for axis in axes]
    assert titles == ["MNIST, pairs", "SVHN, pairs", "", "", "MNIST, triples", "SVHN, triples", "", ""]


# -- files ----------------------------------------------------------------------------------------

FIGURES = {
    "size": lambda: size_figure(accuracies(ns=(10, 20)), DATASETS),
    "loss": lambda: loss_figure(accuracies(losses=("logistic", "ramp")), DATASETS),
    "losses": losses_figure,
    "tuning": lambda: tuning_figure(grid(), "MNIST"),
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_is_the_same_files_each_time(name, tmp_path):
    for place in ("first", "second"):
        save_figure(FIGURES[name](), tmp_path / place / "figure.svg")
    for suffix, start in ((".svg", b"<?xml"), (".pdf", b"%PDF")):
        first = (tmp_path / "first" / f"figure{suffix}").read_bytes()
        assert first == (tmp_path / "second" / f"figure{suffix}").read_bytes()
        assert first.startswith(start)


def test_losses_are_told_apart_by_more_than_colour():
    assert len({style["marker"] for style in LOSS_STYLES.values()}) == len(LOSS_STYLES) == len(LOSSES)
    assert len({style["linestyle"] for style in LOSS_STYLES.values()}) == len(LOSS_STYLES)
