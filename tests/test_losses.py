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
from mdpu.losses import LOSSES, RiskLoss, TupleLoss, count_kinds, means, share_out

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
K = {None: -1, "relu": 0, "abs": 1}


def scores(*shape: int, seed: int = 0, scale: float = 1.5) -> torch.Tensor:
    return scale * torch.randn(
        *shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64
    )


def enumerated_q(law: Law, groups: torch.Tensor) -> np.ndarray:
    """The probability that a group (B, M) passes, by its label vectors."""
    r = 1 / (1 + np.exp(-groups.detach().double().numpy()))
    total = 0.0
    for labels in itertools.product((0, 1), repeat=law.size):
        total = total + law.weights[sum(labels)] * np.where(labels, r, 1 - r).prod(axis=-1)
    return np.asarray(total)


# -- against enumeration --------------------------------------------------------------------------


@pytest.mark.parametrize("correction", [None, "relu", "abs"])
@pytest.mark.parametrize("law", LAWS)
def test_the_joint_loss_equals_enumeration(law, correction):
    tuples = scores(6, law.size)
    unlabeled = scores(4 * law.size + 1, seed=1)
    told = law.at(0.3)
    q = enumerated_q(told, tuples)
    u = enumerated_q(told, unlabeled[:-1].view(4, law.size))
    Z = sum(
        told.weights[k] * math.comb(law.size, k) * 0.3**k * 0.7 ** (law.size - k)
        for k in range(law.size + 1)
    )
    negative = (u**2).mean() - Z * (q**2).mean()
    expected = Z * ((1 - q) ** 2).mean() + (
        negative if negative >= 0 else K[correction] * -negative
    )
    loss = TupleLoss(law, 0.3, correction)
    assert loss(tuples, unlabeled).item() == pytest.approx(expected, rel=1e-9)
    assert loss(tuples, unlabeled[:-1].view(4, law.size)).item() == pytest.approx(
        expected, rel=1e-9
    )


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize("law", LAWS)
def test_the_risk_is_made_of_four_weighted_means(law, scope, name):
    tuples = scores(6, law.size)
    unlabeled = scores(9, seed=1)
    loss = LOSSES[name]
    weights = law.risk_weights(0.3)
    terms = [
        weights[0] * loss(tuples, 1).mean().item(),
        weights[1] * loss(tuples, -1).mean().item(),
        weights[2] * loss(unlabeled, 1).mean().item(),
        weights[3] * loss(unlabeled, -1).mean().item(),
    ]
    for correction, k in K.items():
        parts = [sum(np.multiply(part, terms)) for part in SCOPES[scope]]
        expected = sum(part if part >= 0 else k * -part for part in parts)
        found = RiskLoss(law, 0.3, correction, scope, name)(tuples, unlabeled)
        assert found.item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("make", [TupleLoss, RiskLoss])
def test_ragged_tuples_are_the_mean_over_sizes_as_a_list_and_with_a_mask(make):
    own = [scores(size, seed=size + i) for i, size in enumerate((3, 2, 2, 3, 2))]
    unlabeled = scores(20, seed=9)
    loss = make(Law.dominant, 0.4)
    padded = torch.full((5, 3), math.nan, dtype=torch.float64)
    for row, values in zip(padded, own, strict=True):
        row[: len(values)] = values
    found = loss(own, unlabeled)
    assert loss(padded, unlabeled, mask=~padded.isnan()).item() == found.item()
    pairs, triples = (
        torch.stack([values for values in own if len(values) == size]) for size in (2, 3)
    )
    if make is TupleLoss:  # each size has its share of the unlabeled scores
        expected = 0.6 * loss(pairs, unlabeled[:12]) + 0.4 * loss(triples, unlabeled[12:])
    else:
        uncorrected = RiskLoss(Law.dominant, 0.4, None)
        found = uncorrected(own, unlabeled)
        expected = 0.6 * uncorrected(pairs, unlabeled) + 0.4 * uncorrected(triples, unlabeled)
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)


def test_tuples_with_a_law_each_are_the_mean_over_the_laws():
    laws = [Law.exactly(3, 0), Law.exactly(3, 2).broken(0.1), Law.at_least(2, 1)]
    tuples = scores(10, 3)
    unlabeled = scores(30, seed=1)
    kinds = torch.tensor([0, 1, 2, 1, 1, 2, 0, 1, 1, 1])
    risks = []
    joints = []
    cuts = {0: (0, 6), 1: (6, 24), 2: (24, 30)}
    for kind, law in enumerate(laws):
        own = tuples[kinds == kind, : law.size]
        share = (kinds == kind).double().mean()
        joints.append(share * TupleLoss(law, 0.3)(own, unlabeled[slice(*cuts[kind])]))
        risks.append(share * RiskLoss(law, 0.3, None)(own, unlabeled))
    assert TupleLoss(laws, 0.3)(tuples, unlabeled, kinds=kinds).item() == pytest.approx(
        sum(joints).item(), rel=1e-12
    )
    found = RiskLoss(laws, 0.3, None)(tuples, unlabeled, kinds=kinds)
    assert found.item() == pytest.approx(sum(risks).item(), rel=1e-12)


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
    assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    for one in (value, *torch.autograd.grad(value, (tuples, unlabeled))):
        assert torch.isfinite(one).all()


@pytest.mark.parametrize("make", MAKE)
@pytest.mark.parametrize("law", LAWS)
def test_leading_axes_are_losses_of_their_own_also_under_vmap(make, law):
    tuples = scores(2, 3, 5, law.size)
    unlabeled = scores(2, 3, 9, seed=1)
    loss = make(law)
    found = loss(tuples, unlabeled)
    alone = [[loss(tuples[i, j], unlabeled[i, j]).item() for j in range(3)] for i in range(2)]
    np.testing.assert_allclose(found, alone, rtol=1e-12)
    mapped = torch.vmap(torch.vmap(loss))(tuples, unlabeled)
    np.testing.assert_allclose(mapped, alone, rtol=1e-12)


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
    assert compiled(tuples, unlabeled).item() == pytest.approx(
        loss(tuples, unlabeled).item(), rel=1e-12
    )


@given(st.integers(1, 4), st.floats(0.1, 0.9), st.integers(0, 99))
@settings(max_examples=30, deadline=None)
def test_on_the_density_itself_the_joint_loss_is_flat_at_the_truth(size, prior, seed):
    """Every group of two kinds of instances once, weighted by repetition as the density says."""
    law = Law.at_least(size, 1)
    r = np.random.default_rng(seed).uniform(0.1, 0.9, 2)
    # of the first kind
    share = np.clip((prior - r[1]) / (r[0] - r[1]) if r[0] != r[1] else 0.5, 0.05, 0.95)
    told = share * r[0] + (1 - share) * r[1]
    kinds = np.array(list(itertools.product((0, 1), repeat=size)))
    density = np.where(kinds == 0, share, 1 - share).prod(axis=1)
    q = law.passes(r[kinds], 1 - r[kinds])[0]
    Z = law.rate(told)
    free = torch.logit(torch.from_numpy(r)).requires_grad_()
    own, other = law.passes(free[kinds].sigmoid(), (-free[kinds]).sigmoid())
    weights = torch.from_numpy(density * q / Z), torch.from_numpy(density)
    objective = Z * weights[0] @ other**2 + weights[1] @ own**2 - Z * weights[0] @ own**2
    (slope,) = torch.autograd.grad(objective, free)
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
    shares = share_out(torch.arange(10), torch.tensor([0, 3, 0, 2]))
    assert {kind: share.tolist() for kind, share in shares.items()} == {
        1: [0, 1, 2, 3, 4, 5],
        3: [6, 7, 8, 9],
    }


STEPS = 10
SIZE = 3


def train(rank: int, ranks: int, make) -> list[float]:
    """Train ten steps on this rank's part of each batch; return losses, first gradient and
    weights.
    """
    torch.manual_seed(0)
    network = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1)).double()
    group = None
    if ranks > 1:
        network, group = nn.parallel.DistributedDataParallel(network), torch.distributed.group.WORLD
    loss = make(group)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.5)
    numbers: list[float] = []
    # Unequal parts, and in every other batch none for the last rank.
    for step in range(STEPS):
        data = torch.Generator().manual_seed(step)
        tuples = torch.randn(12, SIZE, 4, generator=data, dtype=torch.float64) + 0.5
        unlabeled = torch.randn(8, SIZE, 4, generator=data, dtype=torch.float64)
        if make is ragged_joint:  # whose bags are made on each rank
            unlabeled = unlabeled[:1, :1].expand(8, SIZE, 4)
        last = ranks - 1 if step % 2 and ranks > 1 else ranks
        edges = [
            0,
            *(round(12 * (i / last) ** 2) for i in range(1, last)),
            *[12] * (ranks - last + 1),
        ]
        cuts = [0, *(round(8 * i / last) for i in range(1, last)), *[8] * (ranks - last + 1)]
        own = tuples[edges[rank] : edges[rank + 1]]
        others = unlabeled[cuts[rank] : cuts[rank + 1]]
        outputs = network(torch.cat([own.flatten(0, 1), others.flatten(0, 1)])).squeeze(1)
        value = loss(
            outputs[: own.shape[0] * SIZE].view(-1, SIZE),
            outputs[own.shape[0] * SIZE :].view(-1, SIZE),
        )
        optimizer.zero_grad()
        value.backward()
        if step == 0:
            numbers += [x for p in network.parameters() for x in p.grad.flatten().tolist()]
        optimizer.step()
        numbers.append(value.item())
    return numbers + [x for p in network.parameters() for x in p.flatten().tolist()]


def ragged(group):
    """A risk of pairs and triples; a tuple is a pair where its first score is above zero."""
    loss = RiskLoss(Law.dominant, 0.4, "abs", process_group=group)
    return lambda pairs, rest: loss(
        pairs, rest, mask=torch.arange(SIZE) < SIZE - (pairs[:, :1] > 0).long()
    )


def ragged_joint(group):
    """The joint loss of lists, of which a rank may have none."""
    loss = TupleLoss(Law.dominant, 0.4, process_group=group)
    return lambda tuples, unlabeled: loss(
        [row[: SIZE - int(row[0] > 0)] for row in tuples], unlabeled
    )


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
            np.testing.assert_allclose(
                torch.load(tmp_path / f"{name}-{rank}.pt"), whole, rtol=1e-9, atol=1e-12
            )
