"""The trained network as a plain module: the same answers in torch, as a state dict, by
`torch.export` and in ONNX.
"""

import numpy as np
import onnxruntime
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.datasets import load_digits
from torch import nn

from mdpu.data import draw_split
from mdpu.export import PlainModule
from mdpu.learners.features import Standardisation
from mdpu.settings import Settings, Task
from mdpu.train import train

VECTORS, DIGITS = load_digits(return_X_y=True)
GREY = (15 * VECTORS).reshape(-1, 8, 8).astype(np.uint8)
LABELS = np.where(DIGITS % 2 == 0, 1, -1).astype(np.int8)
DATA = draw_split(LABELS[:1200], 2, 0.5, 300, 300, 0)
KINDS = {
    "pixels": (GREY, "mlp"),
    "components": (GREY, "components"),
    "vectors": (VECTORS.astype(np.float32), nn.Linear(64, 1)),
    "grey": (GREY, nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(72, 1))),
    "colour": (
        np.repeat(GREY[..., None], 3, axis=3),
        nn.Sequential(
            nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 1)
        ),
    ),
}


@pytest.fixture(scope="module", params=KINDS)
def trained(request):
    """A trained model, and rows that it was not trained on."""
    images, network = KINDS[request.param]
    settings = Settings(epochs=3, batch_size=100, network=network)
    (model,) = train(Task("relu", 2, 0.5), images, [DATA], [0], settings)
    return model, images[1200:]


def assert_answers(found, trained):
    model, rows = trained
    np.testing.assert_allclose(
        np.asarray(found), model.decision_function(rows), rtol=1e-4, atol=1e-4
    )


@torch.no_grad()
def test_it_gives_the_scores_of_rows_as_they_are(trained):
    model, images = trained
    rows = torch.from_numpy(images)
    module = PlainModule(model.module, model.preparation)
    assert not module.network.training
    assert_answers(module(rows), trained)

    turned = PlainModule(model.module, model.preparation, sign=-1, shift=0.5)
    assert_answers(0.5 - turned(rows), trained)


@torch.no_grad()
def test_a_file_of_weights_is_read_into_a_module_that_was_trained_otherwise(trained, tmp_path):
    model, images = trained
    rows = torch.from_numpy(images)
    module = PlainModule(model.module, model.preparation)
    other = PlainModule(model.module, model.preparation)
    path = tmp_path / "weights.safetensors"
    save_file(module.state_dict(), path)
    for value in other.parameters():
        value.zero_()
    assert_answers(module(rows), trained)  # its weights are a copy
    other.load_state_dict(load_file(path))
    assert_answers(other(rows), trained)


def test_a_table_is_standardised_in_double_precision():
    table = 1000 * VECTORS + 5e5
    standardisation = Standardisation.learn(table, components=None)
    table[1300, 3] = np.nan  # a missing value
    table[1400] = 1e9  # outliers
    rows = standardisation(table).astype(np.float32)
    settings = Settings(epochs=3, batch_size=100)
    (model,) = train(Task("relu", 2, 0.5), rows[:1200], [DATA], [0], settings)

    module = PlainModule(model.module, model.preparation, standardisation)
    with torch.no_grad():
        scores = module(torch.from_numpy(table[1200:]))
    assert_answers(scores, (model, rows[1200:]))


@pytest.mark.slow
@pytest.mark.parametrize("trained", ["pixels", "components", "colour"], indirect=True)
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
def test_export_and_onnx_give_the_same_answers_to_any_number_of_rows(trained, tmp_path):
    model, rows = trained
    module = PlainModule(model.module, model.preparation).eval()
    few = torch.from_numpy(rows[:3])
    batch = {0: torch.export.Dim("rows", min=1)}
    program = torch.export.export(module, (few,), dynamic_shapes=(batch,))
    path = tmp_path / "model.pt2"
    torch.export.save(program, path)
    with torch.no_grad():
        loaded = torch.export.load(path).module()
        assert_answers(loaded(torch.from_numpy(rows)), trained)

    path = tmp_path / "model.onnx"
    torch.onnx.export(program, (few,), path, dynamo=True, verbose=False)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    (scores,) = session.run(None, {name: rows})
    assert_answers(scores, trained)
