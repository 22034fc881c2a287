"""What speaks against the numbers of a study: sentences that ``fit`` prints and the page shows."""

from __future__ import annotations

from typing import Literal, NamedTuple

from mdpu.own.account import few
from mdpu.own.findings import Study

Kind = Literal["places", "columns", "prior", "broken", "constant"]


class Doubt(NamedTuple):
    """A sentence, and what it is about."""

    kind: Kind
    text: str


def doubts_of(study: Study) -> list[Doubt]:
    """Return what speaks against the numbers of a study; nothing if it has none."""
    if study.absurd:
        return []
    doubts = [
        _shares_differ(study),
        _columns_differ(study),
        _unknown_prior(study),
        _broken(study),
        _no_better(study),
    ]
    return [doubt for doubt in doubts if doubt is not None]


def _percent(share: float) -> str:
    """Return a share, cut to 0 and 1, in percent."""
    return f"{100 * min(max(share, 0.0), 1.0):.1f}"


def _range(study: Study) -> str:
    return f"{_percent(1 - study.shown.high)} to {_percent(1 - study.shown.low)} %"


def _shares_differ(study: Study) -> Doubt | None:
    places = study.places
    if places is None or not places.shares_differ:
        return None
    return Doubt(
        "places",
        "rows of a group are more alike than the rule allows, so groups seem to come from places "
        "whose shares of positives differ, or the prior is wrong; by the rule "
        f"{100 * (1 - study.error.value):.1f} % of the answers would be right, which is likely too "
        f"many; if places differ, {_range(study)} are: draw the rows of each group from all "
        "places, or take groups and unlabeled rows of one place",
    )


def _columns_differ(study: Study) -> Doubt | None:
    places = study.places
    if places is None or not places.columns_differ:
        return None
    names = list(study.alike)
    where = f" in {few(names)}" if names else ""
    return Doubt(
        "columns",
        f"rows of a group are alike{where} beyond chance, so groups seem to come from places that "
        f"differ; if their shares of positives differ too, {_range(study)} of the answers are "
        "right: draw the rows of each group from all places, or take groups and unlabeled rows of "
        "one place",
    )


def _unknown_prior(study: Study) -> Doubt | None:
    """Return that a given prior is not what the data say, where they say nothing against it."""
    classifier = study.classifier
    estimate = classifier.prior_estimate_
    if classifier.prior is None or estimate is None or not estimate.fits(classifier.prior):
        return None
    if estimate.verdict == "known":
        return None
    said = "nothing of it"
    if estimate.verdict == "bound only":
        said = f"no more than that it lies between {estimate.low:.2f} and {estimate.high:.2f}"
    return Doubt(
        "prior",
        f"the data neither confirm nor refute the prior {classifier.prior:g} that you gave, as "
        f"they say {said}; all numbers follow from it, and one answer for all rows would be right "
        f"in {_percent(study.constant)} %",
    )


def _broken(study: Study) -> Doubt | None:
    if study.with_broken is None or study.from_places or study.suspicion.number is None:
        return None
    number = study.suspicion.number
    n = len(study.data.names)
    return Doubt(
        "broken",
        f"about {number.value:.0f} of {n} groups ({number.low:.0f} to {number.high:.0f}) "
        f"break the rule, so the interval of right answers allows for that: {_range(study)}; "
        f"look at the most suspicious groups, or train with --broken {number.value / n:.2g}",
    )


def _no_better(study: Study) -> Doubt | None:
    if 1 - study.shown.high > study.constant:
        return None
    return Doubt(
        "constant",
        f"the classifier is not shown to be better than one answer for all rows: {_range(study)} "
        f"of its answers are right, and one answer would be in {_percent(study.constant)} %; do "
        "not use it yet",
    )
