"""The losses for any loop against enumeration, and several processes against one."""

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from mdpu.errors import UserError
from mdpu.law import SCOPES, Law
from mdpu.losses import LOSSES, RiskLoss, TupleLoss, count_kinds, joint, means, share_out

DOMINANT = Law.dominant(3)
ODD = Law((0.25, 1.0, 0.0, 0.5))
LAWS = [
    Law.dominant(2),
    DOMINANT,
    DOMINANT.broken(0.2),
    Law.exactly(3, 1),
    Law.similar(2),
    ODD,
    ODD.broken(0.1),
]
CORRECTIONS = [None, "relu", "abs"]


def scores(*shape: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return 1.5 * torch.randn(*shape, generator=generator, dtype=torch.float64)


def enumerated_q(law: Law, groups: torch.Tensor) -> np.ndarray:
    """The probability that a group (B, M) passes, by its label vectors."""
    r = groups.double().sigmoid().numpy()
    total = np.zeros(len(r))
    for labels in itertools.product((0, 1), repeat=law.size):
        of_labels = np.where(labels, r, 1 - r).prod(axis=-1)
        total += law.weights[sum(labels)] * of_labels
    return total


# -- against enumeration --------------------------------------------------------------------------


def assert_close(value: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(value, expected, rtol=1e-12, atol=0)


def corrected(risk: float, correction: str | None) -> float:
    """Return f of Eq. 14."""
    k = {None: -1, "relu": 0, "abs": 1}[correction]
    return risk if risk >= 0 else k * -risk


@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("law", LAWS)
def test_the_joint_loss_equals_enumeration(law, correction):
    """Unlabeled scores are taken as groups, or one by one; one that is left over is not used."""
    prior = 0.3
    tuples = scores(6, law.size)
    unlabeled = scores(4 * law.size + 1, seed=1)
    groups = unlabeled[:-1].view(4, law.size)
    loss = TupleLoss(law, prior, correction)

    at_prior = law.at(prior)
    q = enumerated_q(at_prior, tuples)
    q_of_groups = enumerated_q(at_prior, groups)
    random_group = torch.full((1, law.size), prior, dtype=torch.float64).logit()
    [z] = enumerated_q(at_prior, random_group)
    positive = z * ((1 - q) ** 2).mean()
    negative = (q_of_groups**2).mean() - z * (q**2).mean()
    expected = positive + corrected(negative, correction)

    assert loss(tuples, unlabeled).item() == pytest.approx(expected, rel=1e-9)
    assert loss(tuples, groups).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("law", LAWS)
def test_the_risk_is_made_of_four_weighted_means(law, scope, name):
    tuples = scores(6, law.size)
    unlabeled = scores(9, seed=1)
    loss = LOSSES[name]
    means = [
        loss(tuples, 1).mean().item(),
        loss(tuples, -1).mean().item(),
        loss(unlabeled, 1).mean().item(),
        loss(unlabeled, -1).mean().item(),
    ]
    parts = np.array(SCOPES[scope]) @ np.multiply(law.risk_weights(0.3), means)

    for correction in CORRECTIONS:
        risk = RiskLoss(law, 0.3, correction, scope, name)
        expected = sum(corrected(part, correction) for part in parts)
        assert risk(tuples, unlabeled).item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


def draw_ragged():
    """Return pairs, triples, and all of them in another order."""
    pairs = scores(3, 2)
    triples = scores(2, 3, seed=1)
    return pairs, triples, [triples[0], pairs[0], pairs[1], triples[1], pairs[2]]


@pytest.mark.parametrize("make", [TupleLoss, RiskLoss])
def test_tuples_of_several_sizes_are_a_list_or_padded_with_a_mask(make):
    *_, ragged = draw_ragged()
    unlabeled = scores(20, seed=9)
    padded = nn.utils.rnn.pad_sequence(ragged, batch_first=True, padding_value=math.nan)
    loss = make(Law.dominant, 0.4)

    of_list = loss(ragged, unlabeled)
    of_padded = loss(padded, unlabeled, mask=~padded.isnan())

    assert of_padded.item() == of_list.item()


def test_the_joint_loss_of_several_sizes_gives_each_its_share_of_unlabeled_scores():
    pairs, triples, ragged = draw_ragged()
    unlabeled = scores(20, seed=9)
    loss = TupleLoss(Law.dominant, 0.4)
    of_pairs = loss(pairs, unlabeled[:12])
    of_triples = loss(triples, unlabeled[12:])
    assert_close(loss(ragged, unlabeled), 0.6 * of_pairs + 0.4 * of_triples)


def test_the_risk_of_several_sizes_is_the_mean_over_them():
    pairs, triples, ragged = draw_ragged()
    unlabeled = scores(20, seed=9)
    risk = RiskLoss(Law.dominant, 0.4, None)
    of_pairs = risk(pairs, unlabeled)
    of_triples = risk(triples, unlabeled)
    assert_close(risk(ragged, unlabeled), 0.6 * of_pairs + 0.4 * of_triples)


def test_tuples_with_a_law_each_are_the_mean_over_the_laws():
    laws = [Law.exactly(3, 0), Law.exactly(3, 2).broken(0.1), Law.at_least(2, 1)]
    tuples = scores(10, 3)
    kinds = torch.tensor([0, 1, 2, 1, 1, 2, 0, 1, 1, 1])
    unlabeled = scores(30, seed=1)
    shares = unlabeled.split([6, 18, 6])

    expected_joint = 0.0
    expected_risk = 0.0
    for kind, law in enumerate(laws):
        of_kind = tuples[kinds == kind, : law.size]
        weight = len(of_kind) / 10
        expected_joint += weight * TupleLoss(law, 0.3)(of_kind, shares[kind])
        expected_risk += weight * RiskLoss(law, 0.3, None)(of_kind, unlabeled)

    joint_loss = TupleLoss(laws, 0.3)
    risk = RiskLoss(laws, 0.3, None)
    assert_close(joint_loss(tuples, unlabeled, kinds=kinds), expected_joint)
    assert_close(risk(tuples, unlabeled, kinds=kinds), expected_risk)


# -- in any loop ----------------------------------------------------------------------------------

MAKE = [lambda law: TupleLoss(law, 0.3), lambda law: RiskLoss(law, 0.3)]


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("law", LAWS)
def test_gradients_are_those_of_finite_differences(make, law):
    loss = make(law)
    inputs = (scores(5, law.size).requires_grad_(), scores(9, seed=1).requires_grad_())
    assert torch.autograd.gradcheck(loss, inputs)


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_values_and_gradients_are_finite_however_sure_the_network_is(make, law, dtype):
    extreme = torch.tensor([-1e4, 1e4, 0.0, -30.0, 30.0], dtype=dtype)
    tuples = torch.cartesian_prod(*[extreme] * law.size).requires_grad_()
    unlabeled = extreme.repeat(law.size).requires_grad_()

    value = make(law)(tuples, unlabeled)
    value.backward()

    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    assert torch.isfinite(value)
    assert torch.isfinite(tuples.grad).all()
    assert torch.isfinite(unlabeled.grad).all()


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("law", LAWS)
def test_leading_axes_are_losses_of_their_own_also_under_vmap(make, law):
    tuples = scores(2, 3, 5, law.size)
    unlabeled = scores(2, 3, 9, seed=1)
    loss = make(law)

    values = loss(tuples, unlabeled)
    mapped = torch.vmap(torch.vmap(loss))(tuples, unlabeled)

    for place in itertools.product(range(2), range(3)):
        expected = loss(tuples[place], unlabeled[place])
        assert_close(values[place], expected)
        assert_close(mapped[place], expected)


@pytest.mark.parametrize("make", MAKE)
def test_half_precision_scores_under_autocast_are_computed_in_single_precision(make):
    tuples = scores(5, 3).bfloat16()
    unlabeled = scores(9, seed=1).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = make(DOMINANT)(tuples, unlabeled)
    assert found == make(DOMINANT)(tuples.float(), unlabeled.float())


@pytest.mark.slow
@pytest.mark.parametrize("make", MAKE)
def test_a_compiled_loss_is_one_graph_with_the_same_value(make):
    tuples = scores(5, 3)
    unlabeled = scores(9, seed=1)
    loss = make(DOMINANT)
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    assert_close(compiled(tuples, unlabeled), loss(tuples, unlabeled))


@given(st.integers(1, 4), st.floats(0.05, 0.95), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_on_the_density_itself_the_joint_loss_is_flat_at_the_truth(size, share, seed):
    """Groups of two kinds of instances, each as often as the density says, which is q / Z of that
    of unlabeled groups.
    """
    law = Law.at_least(size, 1)
    r = np.random.default_rng(seed).uniform(0.1, 0.9, 2)  # of each kind
    z = law.rate(share * r[0] + (1 - share) * r[1])
    kinds = np.array(list(itertools.product((0, 1), repeat=size)))
    density = np.where(kinds == 0, share, 1 - share).prod(axis=1)
    truth, _ = law.passes(r[kinds], 1 - r[kinds])
    of_unlabeled = torch.from_numpy(density)
    of_tuples = torch.from_numpy(density * truth / z)

    scores = torch.from_numpy(r).logit().requires_grad_()
    q, complement = joint(law, scores[kinds])
    positive = z * of_tuples @ complement**2
    negative = of_unlabeled @ q**2 - z * of_tuples @ q**2
    (slope,) = torch.autograd.grad(positive + negative, scores)
    assert slope.abs().max() < 1e-12


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "key"),
    [
        (lambda: TupleLoss(DOMINANT, 1.0), "prior"),
        (lambda: TupleLoss(DOMINANT, None), "prior"),
        (lambda: TupleLoss(DOMINANT, 0.5, "ReLU"), "correction"),
        (lambda: TupleLoss(DOMINANT, 0.5, True), "correction"),
        (lambda: RiskLoss(DOMINANT, 0.5, scope="parts"), "scope"),
        (lambda: RiskLoss(DOMINANT, 0.5, loss="log"), "loss"),
        (lambda: RiskLoss(Law.similar(2), 0.5), "prior"),
        (lambda: TupleLoss(DOMINANT, 0.5)(scores(4, 2), scores(8)), "law"),
        (lambda: RiskLoss(DOMINANT, 0.5)(scores(4, 2), scores(8)), "law"),
        (lambda: TupleLoss([DOMINANT], 0.5)(scores(4, 3), scores(8)), "kinds"),
        (
            lambda: RiskLoss([DOMINANT], 0.5)(scores(4, 2), scores(8), kinds=torch.zeros(4).long()),
            "law",
        ),
        (
            lambda: TupleLoss([DOMINANT], 0.5)(
                scores(4, 2), scores(9), kinds=torch.zeros(4).long()
            ),
            "law",
        ),
    ],
)
def test_what_cannot_be_is_refused(make, key):
    with pytest.raises(UserError, match=key):
        make()


# -- several processes ----------------------------------------------------------------------------


def test_a_mean_over_ranks_is_that_of_all_their_values(monkeypatch):
    """This rank holds 1, 2 and 3, the other 10 alone, whose sum and number it adds."""
    other = torch.tensor([[[10.0], [-10.0]], [[1.0], [1.0]]])

    def add_other(sums_and_counts, group):
        return sums_and_counts + other

    monkeypatch.setattr("torch.distributed.nn.functional.all_reduce", add_other)
    here = torch.tensor([[1.0, 2.0, 3.0]])
    first, second = means([here, -here], group="both")
    assert first.tolist() == [4.0]
    assert second.tolist() == [-4.0]


def test_kinds_are_counted_over_ranks_also_those_that_this_one_lacks(monkeypatch):
    def add_other(tensor, op=torch.distributed.ReduceOp.SUM, group=None):
        if op == torch.distributed.ReduceOp.MAX:
            tensor.clamp_(min=4)
        else:
            tensor += torch.tensor([0, 1, 0, 5])

    monkeypatch.setattr("torch.distributed.all_reduce", add_other)
    assert count_kinds(torch.tensor([2, 1, 2]), group="both").tolist() == [0, 2, 2, 5]


def test_each_kind_has_its_share_of_the_unlabeled_scores():
    counts = torch.tensor([0, 3, 0, 2])
    shares = share_out(torch.arange(10), counts)
    assert list(shares) == [1, 3]
    assert torch.equal(shares[1], torch.arange(6))
    assert torch.equal(shares[3], torch.arange(6, 10))


STEPS = 10
SIZE = 3


def parts_of_ranks(count: int, ranks: int, step: int, power: int) -> list[slice]:
    """Return the part of a batch that each rank has: unequal ones, and in every other batch none
    for the last rank.
    """
    busy = ranks
    if ranks > 1 and step % 2:
        busy = ranks - 1
    ends = [round(count * (i / busy) ** power) for i in range(busy + 1)]
    ends += [count] * (ranks - busy)
    return [slice(start, end) for start, end in itertools.pairwise(ends)]


def flat(tensors) -> list[float]:
    return torch.cat([tensor.flatten() for tensor in tensors]).tolist()


def train(rank: int, ranks: int, make) -> list[float]:
    """Train ten steps on this rank's part of each batch; return losses, first gradient and
    weights.
    """
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    group = None
    if ranks > 1:
        network = nn.parallel.DistributedDataParallel(network)
        group = torch.distributed.group.WORLD
    loss = make(group)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)

    numbers: list[float] = []
    for step in range(STEPS):
        generator = torch.Generator().manual_seed(step)
        tuples = torch.randn(12, SIZE, 4, generator=generator, dtype=torch.float64) + 0.5
        unlabeled = torch.randn(8, SIZE, 4, generator=generator, dtype=torch.float64)
        if make is ragged_joint:  # whose bags are made on each rank
            unlabeled = unlabeled[:1, :1].expand(8, SIZE, 4)
        tuples = tuples[parts_of_ranks(12, ranks, step, power=2)[rank]]
        unlabeled = unlabeled[parts_of_ranks(8, ranks, step, power=1)[rank]]

        outputs = network(torch.cat([tuples, unlabeled])).squeeze(-1)  # (B + B', M)
        value = loss(outputs[: len(tuples)], outputs[len(tuples) :])
        optimizer.zero_grad()
        value.backward()
        if step == 0:
            numbers += flat(weight.grad for weight in network.parameters())
        optimizer.step()
        numbers.append(value.item())
    return numbers + flat(network.parameters())


def ragged(group):
    """A risk of pairs and triples; a tuple is a pair where its first score is above zero."""
    loss = RiskLoss(Law.dominant, 0.4, "abs", process_group=group)

    def of_padded(tuples, unlabeled):
        sizes = SIZE - (tuples[:, :1] > 0).long()  # (B, 1)
        return loss(tuples, unlabeled, mask=torch.arange(SIZE) < sizes)

    return of_padded


def ragged_joint(group):
    """The joint loss of lists, of which a rank may have none."""
    loss = TupleLoss(Law.dominant, 0.4, process_group=group)

    def of_list(tuples, unlabeled):
        return loss([row[: SIZE - int(row[0] > 0)] for row in tuples], unlabeled)

    return of_list


PARALLEL = {
    "ragged": ragged,
    "ragged joint": ragged_joint,
    "joint": lambda group: TupleLoss(DOMINANT, 0.4, process_group=group),
    "risk": lambda group: RiskLoss(DOMINANT, 0.4, "abs", process_group=group),
    "parts": lambda group: RiskLoss(DOMINANT, 0.4, "relu", "part", process_group=group),
}


def train_rank(rank: int, folder: Path) -> None:
    """Train all losses as one process of three, and write the numbers of each."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", f"file://{folder}/meeting", rank=rank, world_size=3
    )
    for name, make in PARALLEL.items():
        torch.save(train(rank, 3, make), folder / f"{name}-{rank}.pt")
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_several_processes_do_what_one_does_with_the_whole_batch(tmp_path):
    # imported once for the three
    torch.multiprocessing.set_forkserver_preload(["torch", "mdpu.losses"])
    torch.multiprocessing.start_processes(train_rank, (tmp_path,), 3, start_method="forkserver")
    for name, make in PARALLEL.items():
        whole = train(0, 1, make)
        for rank in range(3):
            numbers = torch.load(tmp_path / f"{name}-{rank}.pt")
            np.testing.assert_allclose(numbers, whole, rtol=1e-9, atol=1e-12)
