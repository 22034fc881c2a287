"""Losses on scores for any training loop: `TupleLoss`, the joint law, and `RiskLoss`, the paper's risk, corrected.

>>> loss = TupleLoss(Law.dominant(2), prior=0.4)
>>> loss(network(tuples), network(unlabeled)).backward()  # scores (B, 2) and (B_U,)

The trainer of this package calls the same functions, so each formula stands here alone. ``docs/explanation/laws.md``
and ``bags.md`` have the theory.

**Several processes.** A corrected risk is no mean over ranks. With `process_group` its parts are summed over the ranks
before the correction, by a collective that autograd sees. Every rank then has the loss of the whole batch, and the mean
of the ranks' gradients, which `DistributedDataParallel` takes, is the gradient of the whole batch. Ranks may hold
unequal numbers. One that has none passes the scores of an empty batch, because every rank takes part forward and
backward. Unlabeled scores are grouped on their rank, so give multiples of M, or whole bags.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mdpu.errors import UserError
from mdpu.law import SCOPES, Law, Scope, check_prior

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

Laws = Law | Callable[[int], Law] | Sequence[Law]
TINY = 1e-12  # what probabilities are raised to before their logarithm is taken
SLOPES = {None: -1.0, "relu": 0.0, "abs": 1.0}  # k of each correction


@dataclass(frozen=True)
class Loss:
    """A margin loss l(g, y) = margin_loss(y g), its name in tables, its LaTeX, and whether Table I has it."""

    title: str
    formula: str
    margin_loss: Callable[[Tensor], Tensor]
    in_table: bool = True

    def __call__(self, scores: Tensor, label: int) -> Tensor:
        """Return the loss of each score against `label` (+1 or -1), same shape as `scores`."""
        return self.margin_loss(scores if label > 0 else -scores)


LOSSES = {
    "logistic": Loss("Logistic", r"\log(1 + \exp(-tz))", lambda z: functional.softplus(-z)),
    "ramp": Loss("Ramp", r"\min(1, \max(0, 1 - tz))", lambda z: torch.clamp(1 - z, 0, 1)),
    "squared": Loss("Squared", r"\frac{1}{4}(tz - 1)^2", lambda z: (z - 1).square() / 4),
    "hinge": Loss("Hinge", r"\max(0, 1 - tz)", lambda z: functional.relu(1 - z)),
    "sigmoid": Loss("Sigmoid", r"\frac{1}{1 + \exp(tz)}", lambda z: torch.sigmoid(-z), in_table=False),
}


# -- formulas, for any leading axes ---------------------------------------------------------------


def correction(risk: Tensor, k: Tensor | float) -> Tensor:
    """Correction function f of Eq. 14: x for x >= 0, k |x| below; elementwise.

    k = 0 is ReLU (Eq. 15), k = 1 is ABS (Eq. 16), and k = -1 is no correction at all.
    """
    return torch.where(risk >= 0, risk, k * risk.abs())


def corrected(terms: Tensor, parts: Tensor, k: Tensor | float) -> Tensor:
    """Return the objective (...) of the risk's four terms (..., 4), corrected in its two parts (..., 2, 4)."""
    return correction(torch.einsum("...pj,...j->...p", parts, terms), k).sum(dim=-1)


def means(values: Sequence[Tensor], group: ProcessGroup | None = None) -> list[Tensor]:
    """Return the mean of each of `values` over its last axis, over all ranks of a process group."""
    if group is None:
        return [value.mean(dim=-1) for value in values]
    from torch.distributed.nn.functional import all_reduce

    sums = torch.stack([value.sum(dim=-1) for value in values])  # (values, ...)
    counts = torch.stack([torch.full_like(own, value.shape[-1]) for own, value in zip(sums, values, strict=True)])
    sums, counts = all_reduce(torch.stack([sums, counts]), group=group)
    return list(sums / counts)


def margin_means(
    loss: Loss, tuples: Tensor, unlabeled: Tensor, positions: Tensor | None = None, group: ProcessGroup | None = None
) -> Tensor:
    """Return the means (..., 4) of l(g, +1) and l(g, -1) over members (..., B M) and over unlabeled scores (..., B_U).

    `positions` (..., B M) multiply the losses of members, see `Law.positions`.
    """
    losses = [loss(scores, label) for scores in (tuples, unlabeled) for label in (1, -1)]
    if positions is not None:
        losses[:2] = [positions * own for own in losses[:2]]
    return torch.stack(means(losses, group), dim=-1)


def ragged_terms(
    loss: Loss, tuples: Tensor, unlabeled: Tensor, sizes: Tensor, weights: Tensor, group: ProcessGroup | None = None
) -> Tensor:
    """Return the risk's four terms (4,) of tuples (B, M) of the `sizes` (B,), whose weights (B, 4) depend on them.

    It is the mean of the risks of each size, by their numbers.
    """
    present = torch.arange(tuples.shape[1], device=tuples.device) < sizes[:, None]
    tuples = tuples.where(present, 0)
    members = [weights[:, i] * (loss(tuples, 1 - 2 * i) * present).sum(dim=1) / sizes for i in (0, 1)]
    values = [*members, *weights[:, 2:].unbind(1), loss(unlabeled, 1), loss(unlabeled, -1)]
    positive, negative, own_positive, own_negative, other_positive, other_negative = means(values, group)
    return torch.stack([positive, negative, own_positive * other_positive, own_negative * other_negative])


def unlabeled_bags(unlabeled: Tensor, tuple_size: int) -> Tensor:
    """Return unlabeled scores (..., B_U) as bags (..., B_U // M, M) that share no member: neighbours make a bag.

    Scores that are left over are not used; less than M of them make one bag in which they stand more than once.
    """
    bags = unlabeled.shape[-1] // tuple_size
    if bags == 0 and unlabeled.shape[-1]:
        return unlabeled.repeat(*[1] * (unlabeled.ndim - 1), tuple_size)[..., None, :tuple_size]
    return unlabeled[..., : bags * tuple_size].reshape(*unlabeled.shape[:-1], bags, tuple_size)


def joint(law: Law, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return q and 1 - q, (...), of groups with the scores (..., M), where r = sigmoid(score)."""
    return law.passes(scores.sigmoid(), (-scores).sigmoid())


def bag_risk(
    law: Law, tuples: Tensor, bags: Tensor, bag_prior: Tensor | float, k: float, group: ProcessGroup | None = None
) -> Tensor:
    """Return Z mean_T (1 - q)^2 + f(mean_B q^2 - Z mean_T q^2), (...): non-negative PU learning on bags.

    The risk is that of du Plessis et al. (2015), its correction that of Kiryo et al. (2017), with bags for instances,
    `bag_prior` Z for the class prior, and the squared loss on q (``bags.md``, "The bag risk").
    """
    q, other = joint(law, tuples)
    bag_q, _ = joint(law, bags)
    positive, subtracted, unlabeled = means([other.square(), q.square(), bag_q.square()], group)
    return bag_prior * positive + correction(unlabeled - bag_prior * subtracted, k)


def contrast(tuples_q: Tensor, bags_q: Tensor, bag_prior: Tensor, group: ProcessGroup | None = None) -> Tensor:
    """Return the cross-entropy (...) of telling tuples from bags, which weigh the same, by their q, (..., B).

    Where both are equally many, a bag is a tuple with the probability q / (q + Z), Z being `bag_prior` (...).
    """
    bag_prior = bag_prior[..., None]
    losses = ((tuples_q + bag_prior) / tuples_q.clamp(min=TINY)).log(), ((bags_q + bag_prior) / bag_prior).log()
    tuples_loss, bags_loss = means(losses, group)
    return (tuples_loss + bags_loss) / 2


def model_contrast(
    law: Law, tuples: Tensor, bags: Tensor, model_prior: Tensor, group: ProcessGroup | None = None
) -> Tensor:
    """Return the contrast (...) with the Z that the model's own class prior (...) gives."""
    (tuples_q, bags_q), bag_prior = seen_at(law, model_prior, joint(law, tuples), joint(law, bags))
    return contrast(tuples_q, bags_q, bag_prior, group)


def seen_at(law: Law, prior: Tensor, *groups: tuple[Tensor, Tensor]) -> tuple[list[Tensor], Tensor]:
    """Return the q (..., B) of groups that have q and 1 - q, and Z (...), at a class prior (...) that is learned.

    They differ from those of the weights where some tuples are broken, and are then known up to a common factor.
    """
    members = prior[..., None].expand(*prior.shape, law.size)
    passed, other = (part.clamp(min=TINY) for part in law.passes(members, 1 - members))
    if not law.refused:
        return [q for q, _ in groups], passed
    leak = law.leak(passed, other)
    return [q + leak[..., None] * rest for q, rest in groups], passed + leak * other


def by_kind(
    tuples: Tensor,
    unlabeled: Tensor,
    kinds: Tensor,
    group: ProcessGroup | None = None,
    size_of: Callable[[int], int] = int,
) -> Iterator[tuple[Tensor, int, Tensor, Tensor]]:
    """Yield, for each kind there is, its share, itself, its tuples (..., B_kind, size) and its unlabeled scores.

    Each of the `kinds` (B,) of the tuples (..., B, M), by default their sizes, has its share of the unlabeled scores
    (..., B_U).
    """
    counts = torch.bincount(kinds, minlength=tuples.shape[-1] + 1)
    if group is not None:
        length = counts.new_tensor(len(counts))
        torch.distributed.all_reduce(length, torch.distributed.ReduceOp.MAX, group=group)
        counts = functional.pad(counts, (0, int(length) - len(counts)))
        torch.distributed.all_reduce(counts, group=group)
    count = int(counts.sum())
    ends = (counts.cumsum(0) * unlabeled.shape[-1] / count).round().int().tolist()
    for kind in counts.nonzero().squeeze(1).tolist():
        start = max(0, min(ends[kind - 1] if kind else 0, unlabeled.shape[-1] - 1))
        own, size = tuples[..., kinds == kind, :], size_of(kind)
        if not own.shape[-2]:  # on this rank
            own = functional.pad(own, (0, max(0, size - own.shape[-1])))
        others = unlabeled[..., start : max(ends[kind], start + 1)]
        yield counts[kind].to(tuples.dtype) / count, kind, own[..., :size], others


# -- modules, for a loop of one's own -------------------------------------------------------------


class _Loss(nn.Module):
    """What both losses share. Laws are read once, so that a compiled loss is one graph."""

    def __init__(
        self,
        law: Laws,
        prior: float | Tensor | None,
        correction: str | None = "relu",
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__()
        if correction not in SLOPES:
            raise UserError(f"correction is {correction!r}; choose 'relu', 'abs' or None")
        self.prior = prior if prior is None or isinstance(prior, Tensor) else check_prior(prior)
        self.law, self.k, self.process_group = law, SLOPES[correction], process_group
        self._read: dict[int, Any] = {law.size: self.read(law)} if isinstance(law, Law) else {}

    def of_kind(self, kind: int) -> Any:
        """Return what `read` gives for the law of a kind of tuples: of a size, or at a place in the sequence."""
        if kind not in self._read:
            if isinstance(self.law, Law):
                raise UserError(f"the law is one of {self.law.size} members, but tuples have {kind}")
            self._read[kind] = self.read(self.law(kind) if callable(self.law) else self.law[kind])
        return self._read[kind]

    def forward(
        self,
        tuples: Tensor | Sequence[Tensor],
        unlabeled: Tensor,
        mask: Tensor | None = None,
        kinds: Tensor | None = None,
    ) -> Tensor:
        """Return the loss, a scalar for each of the leading axes.

        Parameters
        ----------
        tuples : Tensor, shape (..., B, M), or sequence of Tensor, shapes (M_i,)
            Scores of the members, log-odds of the positive class. Tuples of several sizes have no leading axes.
        unlabeled : Tensor, shape (..., B_U) or (..., B', M)
            Scores of unlabeled instances in random order, or of groups of them.
        mask : Tensor, bool, shape (B, M), optional
            Which places of tuples of several sizes, padded at their ends, hold a member.
        kinds : Tensor, int64, shape (B,), optional
            The place of each tuple's law where `law` is a sequence.
        """
        if kinds is None and isinstance(self.law, Sequence):
            raise UserError("there are several laws; give kinds, the place of each tuple's law")
        if not isinstance(tuples, Tensor):
            sizes = torch.tensor([len(own) for own in tuples], dtype=torch.int64, device=unlabeled.device)
            padded = nn.utils.rnn.pad_sequence(list(tuples), batch_first=True) if len(sizes) else None
            tuples = unlabeled.new_empty(0, 1) if padded is None else padded
            kinds = sizes if kinds is None else kinds
        elif kinds is None and mask is not None:
            kinds = mask.sum(dim=1)
        if tuples.dtype in (torch.float16, torch.bfloat16):
            tuples, unlabeled = tuples.float(), unlabeled.float()
        with torch.autocast(tuples.device.type, enabled=False):
            return self.loss(tuples, unlabeled, kinds)

    read: Callable[[Law], Any]
    loss: Callable[[Tensor, Tensor, Tensor | None], Tensor]


class RiskLoss(_Loss):
    """The unbiased risk of single members (Theorem 1) and its corrections (Eqs. 14-16).

    Parameters
    ----------
    law : Law, callable from a size to Law, or sequence of Law
        `Law.dominant`, without a size, serves tuples of several. A sequence is for tuples that have a law each, such as
        ``[Law.exactly(3, k) for k in range(4)]`` where the positives were counted.
    prior : float
    correction : {'relu', 'abs', None}
    scope : {'whole', 'class', 'part'}
        What is corrected: the risk; its positive and its negative part; or the tuples' and the unlabeled part.
    loss : {'logistic', 'ramp', 'squared', 'hinge', 'sigmoid'}
        A row of Table I, or the sigmoid loss.
    process_group : ProcessGroup, optional
        Whose ranks hold the batch.

    Raises
    ------
    UserError
        If members are positive as often as unlabeled instances, or an argument is out of range.
    """

    def __init__(
        self,
        law: Laws,
        prior: float,
        correction: str | None = "relu",
        scope: Scope = "whole",
        loss: str = "logistic",
        process_group: ProcessGroup | None = None,
    ) -> None:
        super().__init__(law, check_prior(prior), correction, process_group)
        self.parts, self.margin_loss = SCOPES[scope], LOSSES[loss]

    def read(self, law: Law) -> tuple[int, list[float], list[float] | None]:
        """Return M, the weights of the four terms, and the factors of the positions if these count."""
        prior = float(self.prior)  # type: ignore[arg-type]
        return law.size, list(law.risk_weights(prior)), law.positions(prior).tolist() if law.ordered else None

    def loss(self, tuples: Tensor, unlabeled: Tensor, kinds: Tensor | None) -> Tensor:
        """Return the corrected risk."""
        unlabeled = unlabeled.flatten(-2) if unlabeled.ndim == tuples.ndim else unlabeled
        if kinds is None:
            _, weights, factors = self.of_kind(tuples.shape[-1])
            positions = None if factors is None else _like(tuples, factors).repeat(tuples.shape[-2])
            own_means = margin_means(self.margin_loss, tuples.flatten(-2), unlabeled, positions, self.process_group)
            terms = _like(tuples, weights) * own_means
        else:
            rows, sizes = tuples.new_empty(len(kinds), 4), torch.empty_like(kinds)
            for kind in kinds.unique().tolist():
                size, weights, factors = self.of_kind(kind)
                if factors is not None or size > tuples.shape[1]:
                    raise UserError(f"law {kind} is one of {size} members, or in it their order counts")
                sizes[kinds == kind] = size
                rows[kinds == kind] = _like(tuples, weights)
            terms = ragged_terms(self.margin_loss, tuples, unlabeled, sizes, rows, self.process_group)
        return corrected(terms, _like(tuples, self.parts), self.k)


class TupleLoss(_Loss):
    """The joint law: non-negative PU learning on bags, `bag_risk`. Scores become log-odds, log p(+1 | x) / p(-1 | x).

    Parameters
    ----------
    law : Law, callable from a size to Law, or sequence of Law
        As of `RiskLoss`.
    prior : float or Tensor, optional
        A tensor, such as ``nn.Parameter(torch.zeros(()))``, holds the log-odds of a prior that is learned with the
        network. Without any, it is the mean of the model's answers. In both cases the loss is the contrast of tuples
        with unlabeled bags, which serves where `Law.identifies` says 'all'.
    correction : {'relu', 'abs', None}
        Of the risk's negative part.
    process_group : ProcessGroup, optional
        Whose ranks hold the batch.

    Raises
    ------
    UserError
        If an argument is out of range, or a prior is to be learned that the law leaves free.
    """

    def read(self, law: Law) -> tuple[Law, float | None]:
        """Return the law at the prior that is told, and its Z."""
        if isinstance(self.prior, float):
            return law.at(self.prior), law.rate(self.prior)
        if self.prior is not None and law.identifies().what == "family":
            raise UserError(f"tuples of the law {law} do not tell the prior, so it cannot be learned; give a number")
        return law, None

    def loss(self, tuples: Tensor, unlabeled: Tensor, kinds: Tensor | None) -> Tensor:
        """Return the corrected risk of bags, or the contrast; that of tuples of several kinds is the mean over them."""
        if kinds is None:
            return self._of_one_kind(tuples.shape[-1], tuples, unlabeled)
        unlabeled = unlabeled.flatten(-2) if unlabeled.ndim == tuples.ndim else unlabeled
        parts = by_kind(tuples, unlabeled, kinds, self.process_group, lambda kind: self.of_kind(kind)[0].size)
        return torch.stack([share * self._of_one_kind(kind, own, others) for share, kind, own, others in parts]).sum()

    def _of_one_kind(self, kind: int, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        (law, rate), group = self.of_kind(kind), self.process_group
        bags = unlabeled if unlabeled.ndim == tuples.ndim else unlabeled_bags(unlabeled, law.size)
        if rate is not None:
            return bag_risk(law, tuples, bags, rate, self.k, group)
        if isinstance(self.prior, Tensor):
            return model_contrast(law, tuples, bags, self.prior.sigmoid(), group)
        (model_prior,) = means([bags.flatten(-2).sigmoid()], group)
        return model_contrast(law, tuples, bags, model_prior, group)


def _like(scores: Tensor, values: Sequence[Any]) -> Tensor:
    return torch.tensor(values, dtype=scores.dtype, device=scores.device)
