"""Classifiers in files: the same answers again, whatever was trained, and no code, whatever the
file says.
"""

import io
import json
import zipfile
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from blobs import IMAGES, draw_sample
from scipy import sparse
from sklearn.callback import ProgressBar
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from torch import nn

from mdpu.data import TupleData
from mdpu.errors import UserError
from mdpu.estimator import MDPUClassifier, Network, TupleClassifier
from mdpu.law import Law
from mdpu.saving import load, save

ROWS = (IMAGES / 255).reshape(len(IMAGES), -1).astype(np.float32)
SAMPLE = draw_sample(n=80)
SINGLES = np.c_[SAMPLE.tuples[40:, 0], np.full(40, -1)]
RAGGED = TupleData(np.concatenate([SAMPLE.tuples[:40], SINGLES]), SAMPLE.unlabeled)
COUNTS = (np.ones(80, int), np.full(80, 2))
pytestmark = pytest.mark.filterwarnings("ignore")


def own(shape):
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 1))


OF_SCIKIT_LEARN = (
    *(AdaBoostClassifier, BaggingClassifier, ExtraTreesClassifier, GradientBoostingClassifier),
    *(RandomForestClassifier, DecisionTreeClassifier),
    *(GaussianNB, LogisticRegression, MLPClassifier),
)
dominant, by_law = (
    partial(kind, 0.4, compare_prior=False) for kind in (MDPUClassifier, TupleClassifier)
)
TRAINED = {
    "student": lambda: dominant(learner="student", dominant="negative").fit(ROWS, SAMPLE),
    "linear": lambda: dominant(learner="linear", prior_shift=0.6).fit(ROWS, SAMPLE),
    "sparse": lambda: dominant().fit(sparse.csr_matrix(ROWS), SAMPLE),
    "prior estimated": lambda: MDPUClassifier(
        guess_prior=True, learner="linear", random_state=np.random.RandomState(0)
    ).fit(ROWS, SAMPLE),
    "boosting": lambda: dominant(learner=HistGradientBoostingClassifier(max_iter=3)).fit(
        ROWS, SAMPLE
    ),
    "pixels": lambda: dominant(learner=Network(n_epochs=2, hidden=(9, 5))).fit(IMAGES, SAMPLE),
    "components": lambda: dominant(learner=Network(n_epochs=2, short=True)).fit(ROWS, SAMPLE),
    "stopped": lambda: dominant(learner=Network(callbacks=[lambda epoch, row: epoch == 2])).fit(
        ROWS, SAMPLE
    ),
    "sizes": lambda: by_law(law=Law.dominant, learner="linear").fit(ROWS, RAGGED),
    "similar": lambda: by_law(law=(1, 0, 1), positive_by=0, learner="linear").fit(ROWS, SAMPLE),
    "labelled": lambda: by_law(
        law=(1, 0, 1), positive_by=(ROWS[:2], [1, -1]), learner="linear"
    ).fit(ROWS, SAMPLE),
    "counts": lambda: by_law(learner="linear").fit(ROWS, SAMPLE, COUNTS),
}
for kind in OF_SCIKIT_LEARN:
    TRAINED[kind.__name__] = lambda kind=kind: dominant(learner=kind()).fit(ROWS, SAMPLE)


@pytest.fixture(scope="module")
def student(tmp_path_factory):
    """The file of a student, as bytes."""
    path = tmp_path_factory.mktemp("student") / "one.skops"
    save(TRAINED["student"](), path)
    return path.read_bytes()


@pytest.mark.parametrize("name", TRAINED)
def test_the_answers_are_the_same_again(name, tmp_path):
    classifier = TRAINED[name]()
    before = set(vars(classifier))
    save(classifier, tmp_path / "one.skops")
    again = load(tmp_path / "one.skops")
    rows = IMAGES if name == "pixels" else sparse.csr_matrix(ROWS) if name == "sparse" else ROWS
    assert np.array_equal(again.decision_function(rows), classifier.decision_function(rows))
    assert (again.prior_, str(again.learner_), again.prior_estimate_) == (
        *(classifier.prior_, str(classifier.learner_)),
        classifier.prior_estimate_,
    )
    assert set(vars(classifier)) == before == set(vars(again))
    if name == "stopped":
        assert again.history_.equals(classifier.history_) and len(again.history_) == 2
        assert torch.equal(
            again.module_(torch.tensor(ROWS)), classifier.module_(torch.tensor(ROWS))
        )


def test_a_pipeline_keeps_its_encoder_its_names_and_its_gaps(tmp_path):
    frame = pd.DataFrame(ROWS[:, 7:11], columns=list("abcd")).assign(
        side=np.where(ROWS[:, 8] > 0.5, "left", "right")
    )
    frame.loc[::7, "a"] = np.nan
    groups = np.full(len(frame), -1)
    groups[:120] = np.arange(120) // 2 * 10**6 + 2
    encoder = make_column_transformer(
        (OneHotEncoder(sparse_output=False), ["side"]), (StandardScaler(), list("abcd"))
    )
    pipeline = make_pipeline(
        encoder.set_output(transform="pandas"),
        MDPUClassifier(0.4, random_state=0, compare_prior=False),
    )
    save(pipeline.fit(frame, groups), tmp_path / "one.skops")
    again = load(str(tmp_path / "one.skops"))
    assert np.array_equal(again.predict_proba(frame), pipeline.predict_proba(frame))
    assert list(again.feature_names_in_) == list(frame)
    with pytest.raises(ValueError, match="missing"):
        again.predict(frame.drop(columns="b"))


def test_a_module_of_ones_own_brings_its_code_itself(tmp_path):
    classifier = MDPUClassifier(0.4, learner=Network(network=own, n_epochs=2)).fit(IMAGES, SAMPLE)
    save(classifier, tmp_path / "one.skops")
    for network in (own, own((6, 6))):
        again = load(tmp_path / "one.skops", network=network)
        assert np.array_equal(again.predict_proba(IMAGES), classifier.predict_proba(IMAGES))
    with pytest.raises(UserError, match="network="):
        load(tmp_path / "one.skops")
    with pytest.raises(UserError, match="weights"):
        load(
            tmp_path / "one.skops",
            network=lambda shape: nn.Sequential(nn.Flatten(), nn.Linear(36, 2)),
        )


def test_a_loss_of_ones_own_is_left_out(tmp_path):
    network = Network(loss=lambda tuples, unlabeled: tuples.square().mean(), n_epochs=2)
    classifier = MDPUClassifier(0.4, learner=network).fit(IMAGES, SAMPLE)
    save(classifier, tmp_path / "one.skops")
    again = load(tmp_path / "one.skops")
    assert np.array_equal(again.decision_function(IMAGES), classifier.decision_function(IMAGES))
    for either in (classifier, again):
        with pytest.raises(UserError, match="your own"):
            either.predict_proba(IMAGES)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_what_a_gpu_trained_is_loaded_on_the_cpu(tmp_path):
    classifier = MDPUClassifier(0.4, learner=Network(n_epochs=2, device="cuda")).fit(IMAGES, SAMPLE)
    save(classifier, tmp_path / "one.skops")
    again = load(tmp_path / "one.skops")
    assert {one.device.type for one in again.model_.module.parameters()} == {"cpu"}
    np.testing.assert_allclose(
        again.decision_function(IMAGES), classifier.decision_function(IMAGES), atol=1e-4
    )


def test_callbacks_are_left_out_of_a_file_and_stay_with_the_classifier(tmp_path):
    pipeline = make_pipeline(StandardScaler(), dominant(learner="linear"))
    pipeline.set_callbacks(ProgressBar())
    groups = np.full(len(ROWS), -1)
    groups[:120] = np.arange(120) // 2 * 10**6 + 2
    save(pipeline.fit(ROWS, groups), tmp_path / "one.skops")
    again = load(tmp_path / "one.skops")
    assert np.array_equal(again.predict(ROWS), pipeline.predict(ROWS))
    assert hasattr(pipeline, "_skl_callbacks") and not hasattr(again, "_skl_callbacks")


class Foreign(LogisticRegression):
    """A learner of another package."""


def test_what_load_would_refuse_is_not_written_unless_one_vouches_for_it(tmp_path):
    foreign = dominant(learner=Foreign()).fit(ROWS, SAMPLE)
    (tmp_path / "one.skops").write_text("what was saved before")
    with pytest.raises(UserError, match=r"test_saving\.Foreign"):
        save(foreign, tmp_path / "one.skops")
    assert (tmp_path / "one.skops").read_text() == "what was saved before"
    trusted = [f"{__name__}.Foreign"]
    save(foreign, tmp_path / "one.skops", trusted=trusted)
    with pytest.raises(UserError, match="trusted"):
        load(tmp_path / "one.skops")
    again = load(tmp_path / "one.skops", trusted=trusted)
    assert np.array_equal(again.predict_proba(ROWS), foreign.predict_proba(ROWS))


def forged(data, change=None, **files):
    """Return a file with its JSON changed, or with other contents of files of these names."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name == "schema.json" and change:
                schema = json.loads(content)
                change(schema)
                content = json.dumps(schema).encode()
            new.writestr(name, files.get(name, content))
    return out.getvalue()


TEXT = {"__class__": "str", "__module__": "builtins", "__loader__": "JsonNode", "is_json": True}


def attacks(command):
    """Nodes that would run a command of the shell if anything was called that a file names."""
    text = {**TEXT, "content": json.dumps(command)}
    arguments = {
        "__class__": "tuple",
        "__module__": "builtins",
        "__loader__": "TupleNode",
        "content": [text],
    }
    system = {"__class__": "system", "__module__": "os"}
    empty = {"__class__": "dict", "__module__": "builtins", "__loader__": "DictNode", "content": {}}
    empty["key_types"] = {
        "__class__": "list",
        "__module__": "builtins",
        "__loader__": "ListNode",
        "content": [],
    }
    function = {**system, "__loader__": "FunctionNode"}
    return {
        "call": {**system, "__loader__": "ConstructorFromReduceNode", "content": arguments},
        "reduce": {
            **system,
            "__loader__": "LossNode",
            "__reduce__": {"args": arguments},
            "content": empty,
        },
        "partial": {
            **{"__class__": "partial", "__module__": "functools", "__loader__": "PartialNode"},
            "content": {"func": function, "args": arguments, "kwds": empty, "namespace": empty},
        },
        "list": {**system, "__loader__": "ListNode", "content": [text]},
        "type of a key": {
            **empty,
            "content": {command: text},
            "key_types": {**empty["key_types"], "content": [{**system, "__loader__": "TypeNode"}]},
        },
        "operator": {
            **{
                "__class__": "methodcaller",
                "__module__": "operator",
                "__loader__": "OperatorFuncNode",
            },
            "attrs": arguments,
        },
        "method": {
            **{"__class__": "Path", "__module__": "pathlib", "__loader__": "MethodNode"},
            "content": {
                "func": "touch",
                "obj": {**empty, "__class__": "Path", "__module__": "pathlib"},
            },
        },
        "import": {
            "__class__": "anything",
            "__module__": "forged",
            "__loader__": "ObjectNode",
            "content": empty,
        },
    }


@pytest.mark.parametrize("name", attacks(""))
def test_a_forged_file_runs_nothing(name, student, tmp_path, monkeypatch):
    # if it is imported
    (tmp_path / "forged.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    monkeypatch.syspath_prepend(tmp_path)
    node = attacks(f"touch {tmp_path / 'ran'}")[name]

    def change(schema):
        schema["content"]["classifier"]["content"]["content"]["prior"] = node

    (tmp_path / "one.skops").write_bytes(forged(student, change))
    with pytest.raises(UserError):
        load(tmp_path / "one.skops")
    assert not (tmp_path / "ran").exists()


def test_a_pickle_in_place_of_an_array_is_not_read(student, tmp_path):
    class Attack:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    pickled = io.BytesIO()
    np.save(pickled, np.array([Attack()], object), allow_pickle=True)
    with zipfile.ZipFile(io.BytesIO(student)) as file:
        arrays = dict.fromkeys(
            (name for name in file.namelist() if name.endswith("npy")), pickled.getvalue()
        )
    (tmp_path / "one.skops").write_bytes(forged(student, **arrays))
    with pytest.raises(UserError):
        load(tmp_path / "one.skops")
    assert not (tmp_path / "ran").exists()


def test_damage_and_other_formats_are_named(student, tmp_path):
    def later(schema):
        schema["content"]["format"]["content"] = "3"

    for data, word in (
        (student[:1000], "damaged"),
        (b"", "damaged"),
        (forged(student, later), "format"),
    ):
        (tmp_path / "one.skops").write_bytes(data)
        with pytest.raises(UserError, match=word):
            load(tmp_path / "one.skops")
    with pytest.raises(UserError, match=r"lost\.skops"):
        load(tmp_path / "lost.skops")


def test_what_cannot_be_saved_is_refused(tmp_path):
    function = TupleClassifier(0.4, law=lambda size: Law.dominant(size), learner="linear").fit(
        ROWS, SAMPLE
    )
    for classifier, word in (
        (function, "function"),
        (RandomForestClassifier(2).fit(ROWS, ROWS[:, 8] > 0.5), "Forest"),
    ):
        with pytest.raises(UserError, match=word):
            save(classifier, tmp_path / "one.skops")
