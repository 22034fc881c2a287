"""The protocol under its variants."""

from __future__ import annotations

import pytest
from configs import VARIANTS, config

from mdpu.pipeline.plan import Plan
from mdpu.pipeline.protocol import Departure, resolve_n_unlabeled


def test_a_variant_overrides_the_protocol_and_base_does_not():
    plan = Plan(config(definitions__experiments__second__variant=["three-n"]))
    expected = {"n_unlabeled": 30, "replacement": True, "overlap": True, "broken": 0.0}
    assert plan.protocol.sampling("base", 30) == expected
    assert plan.protocol.sampling("three-n", 30) == {**expected, "n_unlabeled": 90}
    training = plan.protocol.training("base", "mlp")
    assert (training["epochs"], training["hidden"], training["batch_size"]) == (3, [8], 10)
    assert training["network"] == "mlp"
    assert "stem" not in training


@pytest.mark.parametrize(("value", "n", "expected"), [("n", 7, 7), ("3n", 7, 21), (5, 7, 5)])
def test_unlabeled_counts_are_numbers_or_multiples_of_n(value, n, expected):
    assert resolve_n_unlabeled(value, n) == expected


@pytest.mark.parametrize(("counts", "size", "expected"), [("tuples", 3, 30), ("images", 3, 10), ("images", 40, 1)])
def test_n_counts_tuples_or_their_members(counts, size, expected):
    plan = Plan(config(protocol__sampling__n_counts=counts))
    assert plan.protocol.number_of_tuples("base", size, 30) == expected
    assert plan.protocol.sampling("base", 30)["n_unlabeled"] == 30


def test_a_variant_departs_in_the_keys_in_which_it_differs():
    plan = Plan(config(definitions__variants=VARIANTS))
    assert plan.protocol.departures("base", ["mlp", "resnet34"]) == plan.protocol.departures("adam", ["mlp"]) == []
    assert plan.protocol.departures("three-n", ["mlp"]) == [Departure("n_unlabeled", "n", "3n")]
    assert plan.protocol.departures("stem", ["mlp"]) == []
    assert plan.protocol.departures("stem", ["mlp", "resnet34"]) == [Departure("stem", "cifar", "imagenet")]
    assert plan.protocol.departures("both", ["mlp"]) == [
        Departure("overlap", "true", "false"),
        Departure("hidden", "[8]", "[8, 8]"),
    ]
