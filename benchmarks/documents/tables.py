"""The tables of the documents, in Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from documents.facts import rounding_facts
from documents.rows import ANSWERS, LOSSES, PRIORS, SENSITIVITY, SIZES, VERDICTS, Reference, columns, counted, parts_of
from mdpu.learn.methods import load_method
from mdpu.pipeline.evaluate.published import PROPOSED
from mdpu.pipeline.experiments.sensitivity.tables import key_title, ordered, value_title
from mdpu.pipeline.report.tables import markdown_rows
from mdpu.theory.joint import joint_information, marginal_information
from mdpu.theory.law import coefficients

# The priors that a method is told where 0.5 is true, and the variants that tell them.
TOLD = {
    "0.30": "prior-minus-20",
    "0.40": "prior-minus-10",
    "0.45": "prior-minus-05",
    "0.50": "base",
    "0.55": "prior-plus-05",
    "0.60": "prior-plus-10",
    "0.70": "prior-plus-20",
}
SCOPES = ("ure", "relu", "relu-class", "relu-part", "abs-part")  # as config/scope.yaml has them
# What the candidates of finishing.jsonl do.
FINISHES = {
    "bag-relu-last": "last weights",
    "mean": "running mean (`bag-relu`)",
    "decay": "last weights, cosine decay of the learning rate",
    "regrouped": "last weights, four regroupings a step",
    "entropy 0.05": "last weights, entropy of $r$ times 0.05",
    "entropy 0.2": "last weights, entropy of $r$ times 0.2",
    "mixup": "last weights, mixup",
    "mean and regrouped": "running mean, four regroupings a step",
    "mean and mixup": "running mean, mixup",
}
COLUMNS = [f"{size}, {prior}" if prior == PRIORS[0] else prior for size in SIZES for prior in PRIORS]


def markdown(header: Sequence[str], names: int, rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table; the first `names` columns stand left, the others right."""
    return markdown_rows("", header, names, list(rows)).strip()


def shown(cell: pd.Series, digits: int = 1) -> str:
    """Return mean ± deviation; the mean alone of one trial."""
    mean = f"{cell['mean']:.{digits}f}"
    return mean if pd.isna(cell["std"]) else f"{mean} ± {cell['std']:.{digits}f}"


class Tables:
    """Each method is a table of the rows of `reference`."""

    def __init__(self, reference: Reference) -> None:
        self._reference = reference

    def methods(self, dataset: str, methods: Sequence[str], larger: bool = False) -> str:
        """Methods by size and prior on one dataset; the paper's numbers stand below those of its own methods."""
        n = self._reference.size(dataset, larger)
        title = f"{self._reference.title(dataset)}, $n$ = {n:,}"
        return self._methods([title, *COLUMNS], columns([dataset]), methods, n)

    def neighbours(self, dataset: str, methods: Sequence[str]) -> str:
        """Methods by size and prior on one dataset, without the paper's numbers."""
        cell = self._reference.cell
        rows = [[f"`{m}`", *(shown(cell(*where, m)) for where in columns([dataset]))] for m in methods]
        return markdown([f"neighbours, {self._reference.title(dataset)}", *COLUMNS], 1, rows)

    def datasets(self, names: Sequence[str], prior: str, methods: Sequence[str]) -> str:
        """Methods by dataset and size, at one prior."""
        header = [
            f"{self._reference.title(name)}, {size}" if size == "pairs" else size for name in names for size in SIZES
        ]
        return self._methods(["", *header], columns(names, [prior]), methods, None)

    def _methods(
        self, header: Sequence[str], where: Sequence[tuple[str, str, str]], methods: Sequence[str], n: int | None
    ) -> str:
        rows = []
        for method in methods:
            rows.append([f"`{method}`", *(shown(self._reference.cell(*column, method, n=n)) for column in where)])
            if method in set(self._reference.published.index.get_level_values("method")):
                rows.append(["paper", *(shown(self._reference.paper(*column, method, n=n)) for column in where)])
        return markdown(header, 1, rows)

    def readme(self) -> str:
        """The paper's own methods on MNIST, ours above the paper's."""
        rows = []
        for _, size, prior in columns(["mnist"]):
            for name, of in ((f"{size}, ours", self._reference.cell), ("paper", self._reference.paper)):
                cells = [shown(of("mnist", size, prior, method), 2) for method in PROPOSED]
                rows.append([name, "" if name == "paper" else prior, *cells])
        return markdown(["accuracy in %", "prior", "URE", "ReLU", "ABS"], 2, rows)

    def readme_bags(self) -> str:
        """The methods on bags on MNIST, and the paper's best."""
        return markdown(["accuracy in %", *COLUMNS], 1, self._bags("mnist", 10_000, best_other=False))

    def bags(self, datasets: Sequence[str]) -> str:
        """The methods on bags beside the best others, in every row of Tables II to V."""
        rows = []
        for dataset in datasets:
            for larger in (False, True):
                n = self._reference.size(dataset, larger)
                title = f"{self._reference.title(dataset)}, $n$ = {n:,}"
                for row in self._bags(dataset, n):
                    rows.append([title, *row])
                    title = ""
        return markdown(["Bags", "", *COLUMNS], 2, rows)

    def _bags(self, dataset: str, n: int, best_other: bool = True) -> list[list[str]]:
        of: dict[str, Callable[[str, str, str], pd.Series]] = {
            "paper's best": lambda *where: self._reference.best_published(*where, n=n),
            "others' best": lambda *where: self._reference.best_other(*where, n=n),
            "`bag-relu`": lambda *where: self._reference.cell(*where, "bag-relu", n=n),
            "`bag-free`": lambda *where: self._reference.cell(*where, "bag-free", n=n),
        }
        return [
            [name, *(shown(find(*where)) for where in columns([dataset]))]
            for name, find in of.items()
            if best_other or name != "others' best"
        ]

    def along(self, header: Sequence[str], methods: Sequence[str], points: Sequence[dict[str, Any]]) -> str:
        """Methods on MNIST at prior 0.5, by size; a column for each set of keywords of `Reference.cell`."""
        cell = self._reference.cell
        rows = [
            [
                size,
                f"`{method}`",
                *(shown(cell("mnist", size, "0.5", method, **point)) for point in points),
            ]
            for size in SIZES
            for method in methods
        ]
        return markdown(header, 2, rows)

    def variants(self, name: str, methods: Sequence[str], variants: dict[str, str]) -> str:
        """Methods by variant, which `variants` gives by what a column is called."""
        return self.along([name, "", *variants], methods, [{"variant": variant} for variant in variants.values()])

    def numbers(self, name: str, methods: Sequence[str], numbers: Sequence[int]) -> str:
        """Methods by number of tuples."""
        return self.along([name, "", *(f"{n:,}" for n in numbers)], methods, [{"n": n} for n in numbers])

    def losses(self, methods: Sequence[str]) -> str:
        """Methods by loss."""
        return self.along(["", "", *LOSSES], methods, [{"loss": loss} for loss in LOSSES])

    def told(self, methods: Sequence[str]) -> str:
        """Methods by the prior that they are told."""
        return self.along(["told $\\pi_+$", "", *TOLD], methods, [{"variant": variant} for variant in TOLD.values()])

    def tuple_sizes(self, methods: Sequence[str], sizes: Sequence[int]) -> str:
        """Methods by tuple size on MNIST at prior 0.5, and the information of a tuple in nats."""
        cell = self._reference.cell
        rows = [[f"`{m}`", *(shown(cell("mnist", size, "0.5", m)) for size in sizes)] for m in methods]
        for name, bits in (("jointly", joint_information), ("by members", marginal_information)):
            rows.append([f"nats, {name}", *(f"{bits(size, 0.5):.3f}" for size in sizes)])
        return markdown(["bags, $M$", *map(str, sizes)], 1, rows)

    def ablation(self, methods: dict[str, str]) -> str:
        """Methods on MNIST pairs, each with what `bag-relu` has and it lacks."""
        cell = self._reference.cell
        rows = [
            [f"`{m}`", lacks, *(shown(cell("mnist", "pairs", prior, m)) for prior in PRIORS[1:])]
            for m, lacks in methods.items()
        ]
        return markdown(["method", "without", *PRIORS[1:]], 2, rows)

    def parts(self, methods: Sequence[str]) -> str:
        """The last values of the tuple part and of the unlabeled part of the risk, on MNIST at prior 0.5."""
        rows = []
        for size in SIZES:
            values = [self._reference.last_epochs("mnist", size, "0.5", method).mean() for method in methods]
            rows.append([size, *(" / ".join(f"{part:.2f}" for part in parts_of(value)) for value in values)])
        return markdown(["", *(f"`{method}`" for method in methods)], 1, rows)

    def scope(self) -> str:
        """The scopes of the correction on digits: accuracies, the best bold; and two values of part-wise correction."""
        rows = []
        for (size, prior, loss), group in self._reference.scope.groupby(["tuple_size", "prior", "loss"], sort=False):
            accuracy = group.droplevel([0, 1, 2])["accuracy"]
            texts = {method: f"{100 * value:.1f}" for method, value in accuracy.items()}
            best = f"{100 * accuracy.max():.1f}"
            shares = coefficients(size, float(prior))
            part = group.xs("relu-part", level="method").iloc[0]
            rows.append(
                [
                    *(str(size), prior, loss),
                    *(f"{share:.3f}" for share in (shares.a, shares.b)),
                    *(f"**{texts[method]}**" if texts[method] == best else texts[method] for method in SCOPES),
                    f"{part['true_positive_rate']:.3f}",
                    f"{part['tuple_part']:.2f}",
                ]
            )
        names = ["size $M$", "prior $\\pi_+$", "loss", "share $a$", "share $b$"]
        return markdown([*names, *(f"`{method}`" for method in SCOPES), "TPR", "part $R_T$"], 3, rows)

    def verdicts(self, datasets: Sequence[str], wide: bool = False) -> str:
        """How many of the proposed methods' numbers have each verdict: by method, by dataset, and of all.

        Parameters
        ----------
        datasets
        wide : bool
            Whether the number of cells and the median of the absolute differences stand beside them.
        """
        named = {
            **{f"`{method}`": {"method": method} for method in PROPOSED},
            **{self._reference.title(name): {"dataset": name} for name in datasets},
            "all": {},
        }
        rows = []
        for name, axes in named.items():
            cells = self._reference.compared(**axes)
            counts = counted(cells)
            keys = ("cells", *VERDICTS, *ANSWERS, "median") if wide else VERDICTS
            rows.append([name, *(str(counts[key]) for key in keys)])
        names = ["reproduced", "close", "inconclusive", "differ"]
        return markdown(["", "cells", *names, *ANSWERS, "median difference"] if wide else ["", *names], 1, rows)

    def claims(self) -> str:
        """The paper's claims and those that it suggests, counted."""
        found = self._reference.read("claims").query("said_by != 'project'")
        rows = [[f"`{row.claim}`", row.ours, row.in_single_trials, row.paper] for row in found.itertuples()]
        return markdown(["claim", "ours", "in single trials", "the paper's numbers"], 1, rows)

    def statements(self, claims: Sequence[Mapping[str, Any]], paper: bool = True) -> str:
        """Claims in words, counted; with the paper's own numbers, if these speak to them."""
        rows = [
            [row["statement"].replace("|", "\\|"), row["ours"], row["in_single_trials"], *([row["paper"]] * paper)]
            for row in claims
        ]
        return markdown(["statement", "ours", "in single trials", *["the article's own numbers"] * paper], 1, rows)

    def effects(self, rows: Sequence[Mapping[str, Any]]) -> str:
        """Open choices, each with the points by which it moves a method."""
        lines = []
        for row in rows:
            titles = {row["dataset"]: self._reference.title(row["dataset"])}
            value, base = (value_title(row["key"], row[name], titles) for name in ("value", "base"))
            choice = f"{key_title(row['key'])}: {value}"
            lines.append([f"`{row['method']}`", choice, base, titles[row["dataset"]], f"{row['difference']:+.1f}"])
        return markdown(["method", "choice", "instead of", "on", "points"], 4, lines)

    def editions(self, editions: Mapping[str, Mapping[str, Any]]) -> str:
        """How many numbers have each verdict in each edition."""
        keys = (*VERDICTS, *ANSWERS, "median")
        rows = [[name, *(str(counts[key]) for key in keys)] for name, counts in editions.items()]
        return markdown(
            ["edition", "reproduced", "close", "inconclusive", "differ", *ANSWERS, "median difference"], 1, rows
        )

    def differing(self, cells: Sequence[Mapping[str, Any]]) -> str:
        """Numbers that differ in one of the editions, with their differences and verdicts."""
        rows = [
            [
                f"`{cell['method']}`",
                cell["row"],
                f"{cell['difference_first']:+.1f}, {cell['verdict_first']}",
                f"{cell['difference']:+.1f}, {cell['verdict']}",
            ]
            for cell in cells
        ]
        return markdown(["method", "cell", "first edition", "second edition"], 2, rows)

    def claims_of_editions(self, claims: Sequence[tuple[str, Mapping[str, Any], Mapping[str, Any]]]) -> str:
        """Claims in both editions."""
        kept = ("ours", "in_single_trials", "status")
        rows = [[f"`{name}`", *(edition[key] for edition in both for key in kept)] for name, *both in claims]
        header = [
            "claim",
            "first edition",
            "in single trials",
            "status",
            "second edition",
            "in single trials",
            "status",
        ]
        return markdown(header, 1, rows)

    def tuning(self) -> str:
        """What it costs to choose hyper-parameters without labels."""
        ways = ["best", "protocol", "bags", "members"]
        found = self._reference.read("tables/bags-tuning").to_dict("records")
        rows = [[row["prior"], f"`{row['method']}`", *(f"{row[way]:.2f}" for way in ways)] for row in found]
        return markdown(["tuning", "", *ways], 2, rows)

    def finishes(self) -> str:
        """Ways to finish `bag-relu`, measured one at a time."""
        rows = []
        for row in pd.read_json(self._reference.folder / "finishing.jsonl", lines=True).to_dict("records"):
            gain = f"{row['gain']:+.2f} ± {row['gain_std']:.2f}" if rows else "–"  # the first is what others gain over
            rows.append([FINISHES[row["candidate"]], f"{row['accuracy']:.1f} ± {row['std']:.1f}", gain])
        return markdown(["finish", "accuracy", "gain, paired"], 1, rows)

    def sensitivity(self, datasets: Sequence[str], size: str) -> str:
        """The change of accuracy by each open choice; bold where its interval excludes zero."""
        found = self._reference.study(SENSITIVITY[size])
        where = [(dataset, method) for dataset in datasets for method in PROPOSED]
        by_cell = {(row["key"], row["value"], row["dataset"], row["method"]): row for row in found.to_dict("records")}
        first = {cell[2:]: row["base_mean"] for cell, row in by_cell.items()}
        header = ["key", "protocol", "alternative"]
        titles = {method: load_method(method).title for method in PROPOSED}
        header += [f"{self._reference.title(d)} {titles[m]}" if m == PROPOSED[0] else titles[m] for d, m in where]
        rows = [["", "", "accuracy of the protocol as it stands", *(f"{first[column]:.1f} %" for column in where)]]
        last = ""
        for key, base, value in ordered(found):
            cells = [by_cell.get((key, value, *column)) for column in where]
            names = [key_title(key), value_title(key, base, {})] if key != last else ["", ""]
            rows.append([*names, value_title(key, value, {}), *map(_difference, cells)])
            last = key
        return markdown(header, 3, rows)

    def rounding(self, dataset: str) -> str:
        """Accuracies in bfloat16 and in single precision, by method, the steadiest first."""
        found = rounding_facts(self._reference)[dataset]
        rows = []
        for method, row in sorted(found.items(), key=lambda item: item[1]["tolerance"]):
            moved = [f"{row['mean']:+.2f} ± {row['error']:.2f}", f"{row['most']:.2f}", f"{row['least']:.2f}"]
            means = [f"{row['bf16']:.2f}", f"{row['fp32']:.2f}"]
            rows.append([f"`{method}`", str(row["trials"]), *means, *moved, f"{row['tolerance']:.2f}"])
        header = ["trials", "bf16", "fp32", "mean difference, standard error", "largest", "at least", "tolerance"]
        return markdown([self._reference.title(dataset), *header], 1, rows)

    def calibration(self) -> str:
        """How far probabilities are from frequencies, by prior."""
        measured = pd.read_json(self._reference.folder / "calibration.jsonl", lines=True)
        errors = 100 * measured.pivot(index="method", columns="prior", values="calibration_error")
        errors = errors.loc[errors.mean(axis=1).sort_values().index]
        rows = [
            [f"`{method}`", *(f"{error:.1f}" for error in row)]
            for method, row in zip(errors.index, errors.to_numpy(), strict=True)
        ]
        first, *others = (f"{prior:g}" for prior in errors.columns)
        return markdown(["", f"prior {first}", *others], 1, rows)


def _difference(row: Mapping[str, Any] | None) -> str:
    if row is None:
        return "–"
    text = f"{row['difference']:+.1f} ± {row['std']:.1f}"
    return f"**{text}**" if row["low"] > 0 or row["high"] < 0 else text
