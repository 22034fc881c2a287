"""The trained network as a plain module: the same answers in torch, as a state dict, by `torch.export` and in ONNX."""

from __future__ import annotations

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_digits
from torch import nn

from mdpu.data import draw_split
from mdpu.estimator import MDPUClassifier, TupleClassifier, recipe
from mdpu.estimator.networks import ONE_CYCLE_FROM

IMAGES, DIGITS = load_digits(return_X_y=True)
LABELS = np.where(DIGITS % 2 == 0, 1, -1).astype(np.int8)
DATA = draw_split(LABELS[:1200], 2, 0.5, 300, 300, 0)
TABLE = (1000 * IMAGES + 5e5).astype(np.float64)  # standardisation is needed, in double precision
KINDS = {
    "table": (TABLE, {"network": "mlp"}),
    "negative": (TABLE, {"network": "mlp", "dominant": "negative", "prior_shift": 0.3}),
    "grey": ((15 * IMAGES).reshape(-1, 8, 8).astype(np.uint8), {"network": "mlp"}),
    "components": ((15 * IMAGES).reshape(-1, 8, 8).astype(np.uint8), {"network": "components"}),
    "picture": (
        np.repeat(15 * IMAGES.reshape(-1, 8, 8, 1), 3, axis=3).astype(np.uint8),
        {"network": nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 1))},
    ),
    "vectors": (IMAGES.astype(np.float32), {"network": nn.Linear(64, 1), "standardize": False}),
}


@pytest.fixture(scope="module", params=KINDS)
def trained(request):
    """A classifier, and rows that it was not trained on."""
    rows, parameters = KINDS[request.param]
    common = {"n_epochs": 8, "hidden": (20,), "random_state": 0, "device": "cpu", "compare_prior": False}
    return MDPUClassifier(0.5, learner="network", **common, **parameters).fit(rows, DATA), rows[1200:]


def assert_answers(found, trained):
    classifier, rows = trained
    np.testing.assert_allclose(np.asarray(found), classifier.decision_function(rows), rtol=1e-4, atol=1e-4)


@torch.no_grad()
def test_it_gives_the_scores_of_rows_as_they_are(trained):
    module = trained[0].module_
    assert not module.training
    assert_answers(module(torch.from_numpy(trained[1])), trained)


@torch.no_grad()
def test_a_file_of_weights_is_read_into_a_module_that_was_trained_otherwise(trained, tmp_path):
    classifier, rows = trained
    save_file(classifier.module_.state_dict(), tmp_path / "weights.safetensors")
    other = classifier.module_
    for value in other.parameters():
        value.zero_()
    other.load_state_dict(load_file(tmp_path / "weights.safetensors"))
    assert_answers(other(torch.from_numpy(rows)), trained)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_export_and_onnx_give_the_same_answers_to_any_number_of_rows(trained, tmp_path):
    classifier, rows = trained
    few, batch = torch.from_numpy(rows[:3]), {0: torch.export.Dim("rows", min=1)}
    program = torch.export.export(classifier.module_, (few,), dynamic_shapes=(batch,))
    torch.export.save(program, tmp_path / "model.pt2")
    with torch.no_grad():
        assert_answers(torch.export.load(tmp_path / "model.pt2").module()(torch.from_numpy(rows)), trained)
    torch.onnx.export(program, (few,), tmp_path / "model.onnx", dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    assert_answers(session.run(None, {session.get_inputs()[0].name: rows})[0], trained)


def test_other_learners_have_no_module():
    classifier = TupleClassifier(0.5, law=(0, 1, 1), learner="linear", compare_prior=False).fit(TABLE, DATA)
    with pytest.raises(AttributeError, match="module_ is of networks, but the learner is linear"):
        _ = classifier.module_


# -- data of any size -----------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["rows", "pair"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_large_data_train_where_they_lie_as_small_ones_do(form, dtype, tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", IMAGES.astype(dtype))
    rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    given = (rows, DATA) if form == "rows" else (np.asarray(rows)[DATA.tuples], np.asarray(rows)[DATA.unlabeled])
    classifier = MDPUClassifier(0.5, learner="network", n_epochs=3, random_state=0, device="cpu")
    expected = classifier.fit(*given).decision_function(IMAGES.astype(dtype))
    for module in ("mdpu.estimator.base.LARGE", "mdpu.estimator.samples.LARGE", "mdpu.learn.fitting.LARGE"):
        monkeypatch.setattr(module, 0)
    found = classifier.fit(*given).decision_function(IMAGES.astype(dtype))
    assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("n", "options", "expected"),
    [
        (0, {}, ("constant", 100, 64)),
        (0, {"broken": True}, ("one-cycle", 20, 64)),
        (ONE_CYCLE_FROM - 1, {}, ("constant", 100, 64)),
        (10_000, {"goes_on": True}, ("constant", 100, 64)),
        (20_000, {"goes_on": True}, ("constant", 50, 256)),
        (400, {"broken": True}, ("one-cycle", 20, 64)),
        (10_000, {}, ("one-cycle", 20, 500)),
        (100_000, {}, ("one-cycle", 10, 500)),
        (10**8, {}, ("one-cycle", 5, 500)),
    ],
)
def test_the_recipe_goes_by_the_number_of_tuples(n, options, expected):
    values = recipe(n, **options)
    assert (values.get("schedule", "constant"), values["epochs"], values["batch_size"]) == expected
