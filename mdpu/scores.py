"""What happens to scores before `mdpu.losses` has its formulas: padded, cut by kind of tuple, grouped, averaged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from mdpu.errors import UserError
from mdpu.law import TINY, Law

if TYPE_CHECKING:
    from torch.distributed import ProcessGroup


def means(values: Sequence[Tensor], group: ProcessGroup | None = None) -> list[Tensor]:
    """Return the mean of each of `values` over its last axis, over all ranks of a process group."""
    if group is None:
        return [value.mean(dim=-1) for value in values]
    from torch.distributed.nn.functional import all_reduce

    sums = torch.stack([value.sum(dim=-1) for value in values])  # (values, ...)
    counts = torch.stack([torch.full_like(own, value.shape[-1]) for own, value in zip(sums, values, strict=True)])
    sums, counts = all_reduce(torch.stack([sums, counts]), group=group)
    return list(sums / counts)


def padded(
    tuples: Tensor | Sequence[Tensor], unlabeled: Tensor, mask: Tensor | None, kinds: Tensor | None
) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return scores of tuples as one tensor (..., B, M), the unlabeled ones, and the kinds (B,) of the tuples.

    Kinds are by default the sizes, if these differ. Half precision becomes single precision.
    """
    sizes = None
    if not isinstance(tuples, Tensor):
        sizes = torch.tensor([len(own) for own in tuples], dtype=torch.int64, device=unlabeled.device)
        tuples = nn.utils.rnn.pad_sequence(list(tuples), batch_first=True) if len(sizes) else unlabeled.new_empty(0, 1)
    elif mask is not None:
        sizes = mask.sum(dim=1)
    if tuples.dtype in (torch.float16, torch.bfloat16):
        tuples, unlabeled = tuples.float(), unlabeled.float()
    return tuples, unlabeled, sizes if kinds is None else kinds


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
        elif own.shape[-1] < size:
            raise UserError(f"the law is one of {size} members, but tuples have {own.shape[-1]}")
        others = unlabeled[..., start : max(ends[kind], start + 1)]
        yield counts[kind].to(tuples.dtype) / count, kind, own[..., :size], others
