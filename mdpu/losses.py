"""Losses on scores for any training loop: `TupleLoss`, the joint law, and `RiskLoss`, the paper's
risk, corrected.

>>> loss = TupleLoss(Law.dominant(2), prior=0.4)
>>> loss(network(tuples), network(unlabeled)).backward()  # scores (B, 2) and (B_U,)

The methods of `mdpu.methods` hold the same losses, so each formula stands once.
``docs/explanation/bags.md`` has the theory.

**Several processes.** A corrected risk is not a mean over ranks. With `process_group` its parts are
summed over ranks before the correction. Every rank then has the loss of the whole batch, and the
mean of the ranks' gradients, which `DistributedDataParallel` takes, is its gradient. Ranks may hold
unequal numbers; one that has none passes an empty batch. Unlabeled scores are grouped on their
rank: give multiples of M.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from mdpu.errors import UserError, check_choice
from mdpu.law import SCOPES, Law, RiskWeights, Scope, check_share

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


def count_kinds(kinds: Tensor, group: Group = None) -> Tensor:
    """Return how many tuples there are of each kind, by their kinds (B,), over all ranks of a
    process group.
    """
    counts = torch.bincount(kinds)
    if group is None:
        return counts
    from torch.distributed import ReduceOp, all_reduce

    length = counts.new_tensor(len(counts))
    all_reduce(length, ReduceOp.MAX, group=group)
    counts = functional.pad(counts, (0, int(length) - len(counts)))
    all_reduce(counts, group=group)
    return counts


def share_out(unlabeled: Tensor, counts: Tensor) -> dict[int, Tensor]:
    """Return the unlabeled scores (..., B_U) of each kind that there is: neighbours, by its share
    of all tuples.

    Where there are fewer scores than kinds, some serve two kinds.
    """
    number = unlabeled.shape[-1]
    ends = (counts.cumsum(0) * number / int(counts.sum())).round().int().tolist()
    shares = {}
    for kind in counts.nonzero().squeeze(1).tolist():
        start = ends[kind - 1] if kind else 0
        start = max(0, min(start, number - 1))
        shares[kind] = unlabeled[..., start : max(ends[kind], start + 1)]
    return shares


def ungrouped(unlabeled: Tensor, tuples: Tensor) -> Tensor:
    """Return unlabeled scores, beside tuples (..., B, M), as (..., B_U), also if they are groups
    (..., B', M).
    """
    if unlabeled.ndim == tuples.ndim:
        return unlabeled.flatten(-2)
    return unlabeled


class ScoreLoss(nn.Module):
    """Base of the losses: it reads each law once, and takes the mean over tuples of several kinds.

    A kind of tuples is those of one size, or, where `law` is a sequence, those of one law; then it
    is the place of the law. A loss says what it needs of a law (`law_values`), which terms the
    tuples of a kind give (`kind_terms`), and what it makes of their mean (`combine`).

    Attributes
    ----------
    measures : tuple of str
        Names of what `measured` returns.
    splits_unlabeled : bool
        Whether each kind has its share of the unlabeled scores, or all of them.
    """

    measures: tuple[str, ...] = ()
    splits_unlabeled = False

    def __init__(
        self,
        law: Laws,
        prior: float,
        correction: str | float | None = "relu",
        process_group: Group = None,
    ) -> None:
        super().__init__()
        self.prior = check_share("prior", prior)
        self.law = law
        self.k = slope(correction)
        self.process_group = process_group
        self.values: dict[int, Any] = {}

    def extra_repr(self) -> str:
        """Return the loss's parameters; a checkpoint tells losses apart by them."""
        return f"law={self.law!r}, prior={self.prior!r}, correction={self.k!r}"

    def law_values(self, law: Law) -> Any:
        """Return the numbers that the loss needs of a law."""
        raise NotImplementedError

    def kind_terms(self, kind: int, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the terms, (...) or (..., terms), of the tuples (..., B, M) of one kind."""
        raise NotImplementedError

    def combine(self, terms: Tensor) -> Tensor:
        """Return the loss, (...), that the mean terms give."""
        return terms

    def measured(self, terms: Tensor, unlabeled: Tensor) -> Tensor:
        """Return what a log may show beside the loss, (..., measures), by its terms and the
        unlabeled scores (..., B_U).
        """
        raise NotImplementedError

    def values_of(self, kind: int) -> Any:
        """Return the values of the law of a kind."""
        if kind not in self.values:
            self.values[kind] = self.law_values(self.law_of(kind))
        return self.values[kind]

    def law_of(self, kind: int) -> Law:
        """Return the law of a kind of tuples."""
        if isinstance(self.law, Law):
            if kind != self.law.size:
                raise UserError(f"the law is for {self.law.size} members, but tuples have {kind}")
            return self.law
        if callable(self.law):
            return self.law(kind)
        return self.law[kind]

    def prepare(self, kind: int, device: torch.device) -> None:
        """Read the law of a kind before the first step, for scores of torch's default type on a
        device.
        """
        self.values_of(kind)

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
        if kinds is None and mask is not None:
            kinds = mask.sum(dim=1)
        if not isinstance(tuples, Tensor):
            if kinds is None and not isinstance(self.law, Sequence):
                sizes = [len(scores) for scores in tuples]
                kinds = torch.tensor(sizes, dtype=torch.int64, device=unlabeled.device)
            tuples = padded(tuples, unlabeled)
        if tuples.dtype in (torch.float16, torch.bfloat16):
            tuples = tuples.float()
            unlabeled = unlabeled.float()
        with torch.autocast(tuples.device.type, enabled=False):
            return self.combine(self.terms(tuples, unlabeled, kinds))

    def terms(self, tuples: Tensor, unlabeled: Tensor, kinds: Tensor | None = None) -> Tensor:
        """Return the mean terms, (...) or (..., terms), of tuples (..., B, M) whose kinds are (B,),
        or whose size is M.
        """
        if kinds is None:
            if isinstance(self.law, Sequence):
                raise UserError("there are several laws; give kinds, the place of each tuple's law")
            return self.kind_terms(tuples.shape[-1], tuples, unlabeled)

        counts = count_kinds(kinds, self.process_group)
        shares = counts.to(tuples.dtype) / int(counts.sum())
        flat = ungrouped(unlabeled, tuples)
        means = []
        for kind, of_kind in share_out(flat, counts).items():
            chosen = self.cut(tuples[..., kinds == kind, :], kind)
            terms = self.kind_terms(kind, chosen, of_kind if self.splits_unlabeled else flat)
            means.append(shares[kind] * terms)
        return torch.stack(means).sum(dim=0)

    def cut(self, tuples: Tensor, kind: int) -> Tensor:
        """Return tuples (..., B, M) of one kind without the places that hold no member."""
        size = self.law[kind].size if isinstance(self.law, Sequence) else kind
        width = tuples.shape[-1]
        if not tuples.shape[-2]:  # this rank has none, and may have narrower ones
            return functional.pad(tuples, (0, max(0, size - width)))[..., :size]
        if width < size:
            raise UserError(f"the law is for {size} members, but tuples have {width}")
        return tuples[..., :size]


def padded(tuples: Sequence[Tensor], unlabeled: Tensor) -> Tensor:
    """Return the scores (M_i,) of tuples of several sizes as (B, M); a rank may have none."""
    if not tuples:
        return unlabeled.new_empty(0, 1)
    return nn.utils.rnn.pad_sequence(list(tuples), batch_first=True)


def slope(correction: Any) -> float:
    """Return k of a correction by its name, or the number that is given for it."""
    if isinstance(correction, int | float) and not isinstance(correction, bool):
        return float(correction)
    check_choice("correction", correction, SLOPES)
    return SLOPES[correction]


class RiskLoss(ScoreLoss):
    """The unbiased risk of single members (Theorem 1) and its corrections (Eqs. 14-16).

    Parameters
    ----------
    law : Law, callable from a size to Law, or sequence of Law
        `Law.dominant`, without a size, is for tuples of several sizes. A sequence is for tuples
        that have a law each, such as ``[Law.exactly(3, k) for k in range(4)]`` where the positives
        were counted.
    prior : float
    correction : {'relu', 'abs', None} or float
        What becomes of a negative risk: zero, its absolute value, or the risk as it is; or the
        factor of its absolute value.
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

    measures = tuple(f"risk_{term}" for term in RiskWeights._fields)

    def __init__(
        self,
        law: Laws,
        prior: float,
        correction: str | float | None = "relu",
        scope: Scope = "whole",
        loss: str = "logistic",
        process_group: Group = None,
    ) -> None:
        super().__init__(law, prior, correction, process_group)
        check_choice("scope", scope, SCOPES)
        check_choice("loss", loss, LOSSES)
        self.scope = scope
        self.loss = loss
        self.margin_loss = LOSSES[loss]
        self.parts = torch.tensor(SCOPES[scope], dtype=torch.float64)  # (2, 4)
        self.by_size: Tensor | None = None  # weights (M + 1, 4), once they are prepared
        if isinstance(law, Law):
            self.values_of(law.size)  # which says now that there is no such risk

    def extra_repr(self) -> str:
        """Return the loss's parameters; a checkpoint tells losses apart by them."""
        return f"{super().extra_repr()}, scope={self.scope!r}, loss={self.loss!r}"

    def law_values(self, law: Law) -> Tensor:
        """Return the weights of the four terms, (4,)."""
        weights = law.risk_weights(self.prior)
        return torch.tensor(weights, dtype=torch.float64)

    def prepare(self, kind: int, device: torch.device) -> None:
        """Read the law of a kind, and have its weights where the scores are, so that no step waits
        for them.
        """
        dtype = torch.get_default_dtype()
        if not isinstance(self.law, Sequence | Law):
            self.by_size = self._weights_up_to(kind)
        if self.by_size is not None:
            self.by_size = self.by_size.to(device, dtype)
        self.values[kind] = self.values_of(kind).to(device, dtype)
        self.parts = self.parts.to(device, dtype)

    def _weights_up_to(self, largest: int) -> Tensor | None:
        """Return the weights (M + 1, 4) of tuples of each size, or None if one has no such risk: it
        is refused once a tuple has it.
        """
        try:
            weights = [self.values_of(size) for size in range(1, largest + 1)]
        except UserError:
            return None
        return torch.stack([torch.zeros_like(weights[0]), *weights])

    def terms(self, tuples: Tensor, unlabeled: Tensor, kinds: Tensor | None = None) -> Tensor:
        """Return the mean terms (..., 4). If the weights of all sizes are prepared, tuples of
        several sizes are weighed one by one, so that a GPU waits for no count of them.
        """
        if kinds is None or self.by_size is None or self.process_group is not None:
            return super().terms(tuples, unlabeled, kinds)
        flat = ungrouped(unlabeled, tuples)
        weights = self.by_size[kinds]  # (B, 4)
        absent = torch.arange(tuples.shape[-1], device=kinds.device) >= kinds[:, None]  # (B, M)
        terms = []
        for i, label in enumerate((1, -1)):
            losses = self.margin_loss(tuples.masked_fill(absent, 0.0), label)
            of_tuples = losses.masked_fill(absent, 0.0).sum(dim=-1) / kinds
            terms.append((weights[:, i] * of_tuples).mean(dim=-1))
        for i, label in ((2, 1), (3, -1)):
            of_unlabeled = self.margin_loss(flat, label).mean(dim=-1)
            terms.append(weights[:, i].mean() * of_unlabeled)
        return torch.stack(terms, dim=-1)

    def kind_terms(self, kind: int, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the four terms of the risk, (..., 4)."""
        means = margin_means(
            self.margin_loss,
            tuples.flatten(-2),
            ungrouped(unlabeled, tuples),
            self.process_group,
        )
        return self.values_of(kind).to(means) * means

    def combine(self, terms: Tensor) -> Tensor:
        """Return the corrected risk."""
        return corrected(terms, self.parts.to(terms), self.k)

    def measured(self, terms: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the four terms T+, T-, U+, U-, whose sum estimates the risk, (..., 4)."""
        return terms.detach()


class TupleLoss(ScoreLoss):
    """The joint law: non-negative PU learning on bags, `bag_risk`. Scores become log-odds, log p(+1
    | x) / p(-1 | x).

    Parameters
    ----------
    law, prior, process_group
        As for `RiskLoss`. If the prior is not known, `mdpu.prior` estimates it.
    correction : {'relu', 'abs', None} or float
        Correction of the risk's negative part.
    """

    measures = ("model_prior",)
    splits_unlabeled = True

    def law_values(self, law: Law) -> tuple[Law, float]:
        """Return the law at the prior, and its Z."""
        return law.at(self.prior), law.rate(self.prior)

    def kind_terms(self, kind: int, tuples: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the corrected risk of bags."""
        law, rate = self.values_of(kind)
        bags = unlabeled if unlabeled.ndim == tuples.ndim else unlabeled_bags(unlabeled, law.size)
        return bag_risk(law, tuples, bags, rate, self.k, self.process_group)

    def measured(self, terms: Tensor, unlabeled: Tensor) -> Tensor:
        """Return the model's own class prior, the mean of r over unlabeled scores, (..., 1)."""
        return unlabeled.detach().sigmoid().mean(dim=-1)[..., None]
