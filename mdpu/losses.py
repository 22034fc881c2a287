"""Losses on scores for any training loop: `TupleLoss`, the joint law, and `RiskLoss`, the paper's
risk, corrected.

>>> loss = TupleLoss(Law.dominant(2), prior=0.4)
>>> loss(network(tuples), network(unlabeled)).backward()  # scores (B, 2) and (B_U,)

The trainer here calls the same functions, so each formula stands once. ``docs/explanation/bags.md``
has the theory.

**Several processes.** A corrected risk is not a mean over ranks. With `process_group` its parts are
summed over ranks before the correction. Every rank then has the loss of the whole batch, and the
mean of the ranks' gradients, which `DistributedDataParallel` takes, is its gradient. Ranks may hold
unequal numbers; one that has none passes an empty batch. Unlabeled scores are grouped on their
rank: give multiples of M.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mdpu.errors import UserError, check_choice
from mdpu.law import SCOPES, Law, Scope, check_share

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup

    Group = ProcessGroup | None
Laws = Law | Callable[[int], Law] | Sequence[Law]
Scores = Tensor | Sequence[Tensor]
SLOPES = {"relu": 0.0, "abs": 1.0, None: -1.0}  # k of each correction


@dataclass(frozen=True)
class Loss:
    """A margin loss l(g, y) = margin_loss(y g), its name in tables, its LaTeX, and whether Table I
    has it.
    """

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
    "usual-ramp": Loss(  # as in the literature; Table I leaves the half out
        "Usual ramp",
        r"\min(1, \max(0, \frac{1}{2}(1 - tz)))",
        lambda z: torch.clamp((1 - z) / 2, 0, 1),
        in_table=False,
    ),
    "sigmoid": Loss(
        "Sigmoid", r"\frac{1}{1 + \exp(tz)}", lambda z: torch.sigmoid(-z), in_table=False
    ),
}


def correction(risk: Tensor, k: Tensor | float) -> Tensor:
    """Return f of Eq. 14, x for x >= 0 and k |x| below: ReLU with k = 0 (Eq. 15), ABS with 1 (Eq.
    16), x with -1.
    """
    return torch.where(risk >= 0, risk, k * risk.abs())


def corrected(terms: Tensor, parts: Tensor, k: Tensor | float) -> Tensor:
    """Return the objective (...) of the risk's four terms (..., 4), corrected in its two parts
    (..., 2, 4).
    """
    return correction(torch.einsum("...pj,...j->...p", parts, terms), k).sum(dim=-1)


def means(values: Sequence[Tensor], group: Group = None) -> list[Tensor]:
    """Return the mean of each of `values` over its last axis, over all ranks of a process group."""
    if group is None:
        return [value.mean(dim=-1) for value in values]
    from torch.distributed.nn.functional import all_reduce

    sums = torch.stack([value.sum(dim=-1) for value in values])  # (values, ...)
    lengths = [value.shape[-1] for value in values]
    counts = torch.stack([torch.full_like(x, n) for x, n in zip(sums, lengths, strict=True)])
    sums, counts = all_reduce(torch.stack([sums, counts]), group=group)
    return list(sums / counts)


def margin_means(loss: Loss, tuples: Tensor, unlabeled: Tensor, group: Group = None) -> Tensor:
    """Return the means (..., 4) of l(g, +1) and l(g, -1) over members (..., B M) and over unlabeled
    scores (..., B_U).

    Theorem 1 weighs them.
    """
    losses = [loss(scores, label) for scores in (tuples, unlabeled) for label in (1, -1)]
    return torch.stack(means(losses, group), dim=-1)


def joint(law: Law, scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return q and 1 - q, (...), of groups with the scores (..., M), where r = sigmoid(score)."""
    return law.passes(scores.sigmoid(), (-scores).sigmoid())


def bag_risk(
    law: Law, tuples: Tensor, bags: Tensor, bag_prior: Tensor | float, k: float, group: Group = None
) -> Tensor:
    """Return Z mean_T (1 - q)^2 + f(mean_B q^2 - Z mean_T q^2), (...): non-negative PU learning on
    bags.

    The risk is that of du Plessis et al. (2015), its correction that of Kiryo et al. (2017), with
    bags for instances, `bag_prior` Z for the class prior, and the squared loss on q (``bags.md``,
    "The bag risk").
    """
    (q, other), (bag_q, _) = joint(law, tuples), joint(law, bags)
    positive, subtracted, unlabeled = means([other.square(), q.square(), bag_q.square()], group)
    return bag_prior * positive + correction(unlabeled - bag_prior * subtracted, k)


def unlabeled_bags(unlabeled: Tensor, tuple_size: int) -> Tensor:
    """Return unlabeled scores (..., B_U) as bags (..., B_U // M, M) that share no member:
    neighbours make a bag.

    Scores that are left over are not used. If there are fewer than M in all, they make one bag and
    occur several times.
    """
    count = unlabeled.shape[-1]
    bags = count // tuple_size
    if bags == 0 and count:
        one_axis_each = [1] * (unlabeled.ndim - 1)
        repeated = unlabeled.repeat(*one_axis_each, tuple_size)
        return repeated[..., None, :tuple_size]
    used = unlabeled[..., : bags * tuple_size]
    return used.reshape(*unlabeled.shape[:-1], bags, tuple_size)


def by_kind(
    tuples: Tensor,
    unlabeled: Tensor,
    kinds: Tensor,
    group: Group = None,
    size_of: Callable[[int], int] = int,
) -> Iterator[tuple[Tensor, int, Tensor, Tensor]]:
    """Yield for each kind its share, the kind, its tuples (..., B_kind, size) and its unlabeled
    scores.

    Each of the `kinds` (B,) of the tuples (..., B, M), by default their sizes, has its share of the
    unlabeled scores (..., B_U).
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
        own = tuples[..., kinds == kind, :]
        size = size_of(kind)
        if not own.shape[-2]:  # on this rank
            own = functional.pad(own, (0, max(0, size - own.shape[-1])))
        elif own.shape[-1] < size:
            raise UserError(f"the law is for {size} members, but tuples have {own.shape[-1]}")
        others = unlabeled[..., start : max(ends[kind], start + 1)]
        yield counts[kind].to(tuples.dtype) / count, kind, own[..., :size], others


class _Loss(nn.Module):
    """The part that both losses share. Laws are read once, so that a compiled loss is one graph."""

    read: Callable[[Law], tuple[Any, ...]]  # values of a law, which `part` takes first
    # of kind, its tuples, its unlabeled scores, and all of them
    part: Callable[[int, Tensor, Tensor, Tensor], Tensor]

    def __init__(
        self, law: Laws, prior: float, correction: str | None = "relu", process_group: Any = None
    ) -> None:
        super().__init__()
        check_choice("correction", correction, SLOPES)
        self.prior = check_share("prior", prior)
        self.law = law
        self.k = SLOPES[correction]
        self.process_group = process_group
        self._read = {law.size: self.read(law)} if isinstance(law, Law) else {}

    def of_kind(self, kind: int) -> tuple[Any, ...]:
        """Return the values of `read` for the law of a kind of tuples: of a size, or at a place in
        the sequence.
        """
        if kind not in self._read:
            if isinstance(self.law, Law):
                raise UserError(f"the law is for {self.law.size} members, but tuples have {kind}")
            self._read[kind] = self.read(self.law(kind) if callable(self.law) else self.law[kind])
        return self._read[kind]

    def forward(
        self,
        tuples: Scores,
        unlabeled: Tensor,
        mask: Tensor | None = None,
        kinds: Tensor | None = None,
    ) -> Tensor:
        """Return the loss, a scalar for each of the leading axes; for tuples of several kinds, the
        mean over the kinds.

        Parameters
        ----------
        tuples : Tensor, shape (..., B, M), or sequence of Tensor, shapes (M_i,)
            Scores of the members, log-odds of the positive class. Tuples of several sizes have no
            leading axes.
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
            sizes = torch.tensor(
                [len(own) for own in tuples], dtype=torch.int64, device=unlabeled.device
            )
            padded = (
                nn.utils.rnn.pad_sequence(list(tuples), batch_first=True)
                if tuples
                else unlabeled.new_empty(0, 1)
            )
            return self(padded, unlabeled, kinds=sizes if kinds is None else kinds)
        if kinds is None and mask is not None:
            kinds = mask.sum(dim=1)
        if tuples.dtype in (torch.float16, torch.bfloat16):
            tuples, unlabeled = tuples.float(), unlabeled.float()
        with torch.autocast(tuples.device.type, enabled=False):
            flat = unlabeled.flatten(-2) if unlabeled.ndim == tuples.ndim else unlabeled
            if kinds is None:
                return self.whole(self.part(tuples.shape[-1], tuples, unlabeled, flat))
            cut = by_kind(
                tuples, flat, kinds, self.process_group, lambda kind: self.of_kind(kind)[0].size
            )
            parts = [share * self.part(kind, own, others, flat) for share, kind, own, others in cut]
            return self.whole(torch.stack(parts).sum(dim=0))

    def whole(self, part: Tensor) -> Tensor:
        """Return the loss that the mean of the parts gives."""
        return part


class RiskLoss(_Loss):
    """The unbiased risk of single members (Theorem 1) and its corrections (Eqs. 14-16).

    Parameters
    ----------
    law : Law, callable from a size to Law, or sequence of Law
        `Law.dominant`, without a size, is for tuples of several sizes. A sequence is for tuples
        that have a law each, such as ``[Law.exactly(3, k) for k in range(4)]`` where the positives
        were counted.
    prior : float
    correction : {'relu', 'abs', None}
    scope : {'whole', 'class', 'part'}
        What is corrected: the risk; its positive and its negative part; or the tuples' and the
        unlabeled part.
    loss : {'logistic', 'ramp', 'squared', 'hinge', 'usual-ramp', 'sigmoid'}
        A row of Table I, the ramp loss as it is usually written, or the sigmoid loss.
    process_group : ProcessGroup, optional
        The group whose ranks hold the batch.

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
        process_group: Group = None,
    ) -> None:
        super().__init__(law, prior, correction, process_group)
        check_choice("scope", scope, SCOPES)
        check_choice("loss", loss, LOSSES)
        self.parts = SCOPES[scope]
        self.margin_loss = LOSSES[loss]

    def read(self, law: Law) -> tuple[Law, list[float]]:
        """Return the law and the weights of the four terms."""
        return law, list(law.risk_weights(self.prior))

    def part(self, kind: int, tuples: Tensor, others: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the four terms of the risk, for which every kind takes all unlabeled scores."""
        own_means = margin_means(
            self.margin_loss, tuples.flatten(-2), unlabeled, self.process_group
        )
        return tuples.new_tensor(self.of_kind(kind)[1]) * own_means

    def whole(self, terms: Tensor) -> Tensor:
        """Return the corrected risk."""
        return corrected(terms, terms.new_tensor(self.parts), self.k)


class TupleLoss(_Loss):
    """The joint law: non-negative PU learning on bags, `bag_risk`. Scores become log-odds, log p(+1
    | x) / p(-1 | x).

    Parameters
    ----------
    law, prior, process_group
        As for `RiskLoss`. If the prior is not known, `mdpu.prior` estimates it.
    correction : {'relu', 'abs', None}
        Correction of the risk's negative part.
    """

    def read(self, law: Law) -> tuple[Law, float]:
        """Return the law at the prior, and its Z."""
        return law.at(self.prior), law.rate(self.prior)

    def part(self, kind: int, tuples: Tensor, others: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the corrected risk of bags."""
        law, rate = self.of_kind(kind)
        bags = others if others.ndim == tuples.ndim else unlabeled_bags(others, law.size)
        return bag_risk(law, tuples, bags, rate, self.k, self.process_group)
