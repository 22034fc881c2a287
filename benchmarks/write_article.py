"""Write the article, docs/explanation/article.md, from results/reference: no number in it is typed by hand.

    python benchmarks/write_article.py

The text is docs/_templates/article.md.j2. A test compares the page with what this writes.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mdpu.evaluate.comparison import CLOSE, DIFFERS, INCONCLUSIVE, REPRODUCED
from mdpu.evaluate.published import PROPOSED, published_cells
from mdpu.files import REPOSITORY, read_csv
from mdpu.kinds.sensitivity.tables import key_title, value_title
from mdpu.learn.methods import load_method
from mdpu.study.config import Config, load_config
from mdpu.study.grid import ROW

REFERENCE = REPOSITORY / "results" / "reference"
# The studies of single choices, and the baselines, are those of the first edition, whose trials one seed drew for all
# cells.
FIRST = REFERENCE / "first"
TEMPLATE = REPOSITORY / "docs" / "_templates" / "article.md.j2"
PAGE = REPOSITORY / "docs" / "explanation" / "article.md"
VERDICTS = {"reproduced": REPRODUCED, "close": CLOSE, "inconclusive": INCONCLUSIVE, "differs": DIFFERS}
# The claims of the article that are told in its table, in this order.
CLAIMS = (
    "ure-risk-goes-negative",
    "ure-accuracy-falls-with-its-risk",
    "corrected-objective-stays-non-negative",
    "corrected-risk-stays-non-negative",
    "corrected-accuracy-holds",
    "corrected-beats-ure",
    "corrected-beats-ure-significantly",
    "corrected-varies-less",
    "corrected-grows-more-steeply",
    "corrected-grows-significantly-more-steeply",
    "accuracy-grows-with-n",
    "triples-beat-pairs",
    "lower-prior-is-easier",
)


def counted(cells: pd.DataFrame, title: str) -> dict[str, Any]:
    """Return how many cells have each verdict, and the median of the absolute differences."""
    counts = {name: int((cells["verdict"] == verdict).sum()) for name, verdict in VERDICTS.items()}
    return {
        "title": title,
        "cells": len(cells),
        **counts,
        "median": f"{cells['difference'].abs().median():.1f}",
    }


def proposed_cells(folder: Path) -> pd.DataFrame:
    """Return the comparisons of the article's methods in a folder."""
    cells = read_csv(folder / "comparison.csv")
    return cells[cells["method"].isin(PROPOSED)]


def verdict_facts(config: Config) -> tuple[dict[str, dict[str, Any]], pd.DataFrame]:
    """Return the counts of verdicts by method, by dataset and of all, and the cells that were counted."""
    cells = proposed_cells(REFERENCE)
    facts = {name: counted(cells[cells["method"] == name], f"`{name}`") for name in PROPOSED}
    for name in config["definitions"]["datasets"]:
        if name in set(cells["dataset"]):
            facts[name] = counted(cells[cells["dataset"] == name], title_of(config, name))
    return {**facts, "all": counted(cells, "all")}, cells


def edition_facts(config: Config) -> dict[str, Any]:
    """Return what the second edition says otherwise than the first: verdicts, and claims that both speak to."""
    first, second = (proposed_cells(folder).set_index("cell") for folder in (FIRST / "tables", REFERENCE))
    both = first.merge(second, left_index=True, right_index=True, suffixes=("_first", ""))
    before, after = (claim_facts(folder) for folder in (FIRST / "tables", REFERENCE))
    differ = [
        {
            "method": row["method"],
            "row": f"{title_of(config, row['dataset'])}, {'pairs' if row['tuple_size'] == 2 else 'triples'}, "
            f"n = {row['n']:,}, prior {row['prior']}",
            "first": row["verdict_first"],
            "second": row["verdict"],
            "difference_first": f"{row['difference_first']:+.1f}",
            "difference": f"{row['difference']:+.1f}",
        }
        for row in both.to_dict("records")
        if DIFFERS in (row["verdict_first"], row["verdict"])
    ]
    return {
        "cells": len(both),
        "same": int((both["verdict"] == both["verdict_first"]).sum()),
        "opposite": int(
            (
                both[["verdict", "verdict_first"]].isin([REPRODUCED, CLOSE, DIFFERS]).all(axis=1)
                & ((both["verdict"] == DIFFERS) != (both["verdict_first"] == DIFFERS))
            ).sum()
        ),
        "counts": [
            counted(first.loc[both.index], "first"),
            counted(second.loc[both.index], "second"),
        ],
        "correlation": f"{both['difference'].corr(both['difference_first']):.2f}",
        "differ": differ,
        "claims": [
            {**after[name], "first": before[name]["ours"], "first_in_trials": before[name]["in_single_trials"]}
            for name in CLAIMS
            if name in before and name in after
        ],
        "baselines": before["proposed-beat-baselines"]["ours"],
    }


def title_of(config: Config, dataset: str) -> str:
    """Return the title of a dataset."""
    return str(config["definitions"]["datasets"][dataset]["title"])


def claim_facts(folder: Path) -> dict[str, dict[str, Any]]:
    """Return the claims of a folder by name, with the number of cases in which each fails."""
    facts = {}
    for row in read_csv(folder / "claims.csv").to_dict("records"):
        held, cases = (int(part) for part in row["ours"].split(" of "))
        facts[row["claim"]] = {**row, "failed": f"{cases - held} of {cases}"}
    return facts


def letters_facts() -> dict[str, Any]:
    """Return how far the numbers of the letters lie below the published ones where the sides are read as stated."""
    cells = read_csv(FIRST / "letters" / "comparison.csv")
    difference = cells.loc[(cells["reading"] == "as stated") & cells["method"].isin(PROPOSED), "difference"]
    return {
        "low": f"{-difference.max():.0f}",
        "high": f"{-difference.min():.0f}",
        "below": int((difference < 0).sum()),
        "cells": len(difference),
    }


def sensitivity_rows(config: Config) -> list[dict[str, str]]:
    """Return, for each method, the choice with the largest effect whose interval excludes zero."""
    effects = read_csv(FIRST / "sensitivity" / "sensitivity.csv")
    effects = effects[effects["method"].isin(PROPOSED) & (effects["low"] * effects["high"] > 0)]
    rows = []
    for method in PROPOSED:
        own = effects[effects["method"] == method]
        largest = own.loc[own["difference"].abs().idxmax()]
        titles = {largest["dataset"]: title_of(config, largest["dataset"])}
        values = {name: value_title(largest["key"], str(largest[name]), titles) for name in ("value", "base")}
        rows.append(
            {
                "method": method,
                "value": f"{key_title(largest['key'])}: {values['value']}",
                "base": values["base"],
                "dataset": titles[largest["dataset"]],
                "difference": f"{largest['difference']:+.1f}",
            }
        )
    return rows


def ranks_facts() -> dict[str, Any]:
    """Return the average ranks of the proposed methods over our rows, and over the article's."""
    ranks = read_csv(REFERENCE / "ranks.csv")
    ranks = ranks[(ranks["unit"] == "row") & ranks["method"].isin(PROPOSED)]

    def said(source: str) -> str:
        own = ranks[ranks["source"] == source].sort_values("average_rank")
        return ", ".join(
            f"{row['average_rank']:.2f} ({load_method(row['method']).title})" for row in own.to_dict("records")
        )

    sizes = ranks.groupby("source")["blocks"].first()
    ours, paper = "ours", next(source for source in sizes.index if source != "ours")
    return {"ours": said(ours), "paper": said(paper), "rows": int(sizes[ours]), "paper_rows": int(sizes[paper])}


def bag_facts(config: Config) -> dict[str, Any]:
    """Return the size of the comparison of the bag methods, and what `bag-relu` gains over the article's best."""
    runs = read_csv(REFERENCE / "runs.csv").query("variant == 'base'")
    published = published_cells().groupby(list(ROW))["published_mean"].max()
    datasets = config["definitions"]["datasets"]
    own = runs[runs["method"] == "bag-relu"]
    own = own.assign(dataset=own["dataset"].map(lambda name: datasets[name].get("published", name)))
    gain = own.groupby(list(ROW))["accuracy"].mean() - published
    return {
        "runs": int(runs["method"].isin(["bag-relu", "bag-free"]).sum()),
        "trials": int(runs["seed"].nunique()),
        **{
            name: f"{value:.1f}"
            for name, value in {"least": gain.min(), "median": gain.median(), "most": gain.max()}.items()
        },
    }


def cost_facts(epochs: int) -> dict[str, Any]:
    """Return what `bag-relu` and ReLU cost."""
    lines = (REFERENCE / "method-cost.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {(row["method"], row["tuple_size"]): row for row in map(json.loads, lines)}
    relu = rows["relu", 2]
    return {
        "pairs": f"{rows['bag-relu', 2]['times_relu_processor']:.2f}",
        "triples": f"{rows['bag-relu', 3]['times_relu_processor']:.2f}",
        "run": f"{relu['processor_seconds_per_run_epoch'] * epochs:.0f}",
        "epochs": epochs,
        "device": relu["device"],
    }


def listed(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    return f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]


def facts() -> Mapping[str, Any]:
    """Return everything that the article states in numbers."""
    config = load_config([REPOSITORY / "config.yaml"])
    verdicts, cells = verdict_facts(config)
    claims = claim_facts(REFERENCE)
    bag_claims = {name: row for name, row in claims.items() if row["said_by"] == "project"}
    trials = np.unique(cells["trials"])
    assert len(trials) == 1, "the cells have different numbers of trials; say so in the article"
    return {
        "verdicts": verdicts,
        "datasets": listed([title_of(config, name) for name in dict.fromkeys(cells["dataset"])]),
        "trials": int(trials[0]),
        "claims": claims,
        "claim_rows": [claims[name] for name in CLAIMS],
        "bag_rows": list(bag_claims.values()),
        "letters": letters_facts(),
        "sensitivity": sensitivity_rows(config),
        "ranks": ranks_facts(),
        "bags": bag_facts(config),
        "costs": cost_facts(config["protocol"]["training"]["epochs"]),
        "margin": f"{config['comparison']['margin']:g}",
        "wider": f"{config['comparison']['wider_margin']:g}",
        "runs_total": len(read_csv(REFERENCE / "runs.csv")),
        "editions": edition_facts(config),
    }


def reflow(text: str) -> str:
    """Return Markdown with the lines of its paragraphs and list items filled; tables and headings stay as they are."""
    blocks = []
    for block in re.split(r"\n{2,}", text.strip()):
        if block.startswith(("|", "#", "<!--")):
            blocks.append(block)
            continue
        items = re.split(r"\n(?=- |\d+\. )", block)
        filled = []
        for item in items:
            marker = re.match(r"- |\d+\. |", item)
            assert marker is not None
            indent = " " * len(marker[0])
            lines = textwrap.wrap(
                " ".join(item.split()), 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
            )
            filled.append("\n".join(lines))
        blocks.append("\n".join(filled))
    return "\n\n".join(blocks) + "\n"


def render() -> str:
    """Return the page."""
    environment = Environment(  # Markdown, and no foreign text
        loader=FileSystemLoader(TEMPLATE.parent),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,
    )
    return reflow(environment.get_template(TEMPLATE.name).render(facts()))


if __name__ == "__main__":
    PAGE.write_text(render(), encoding="utf-8")
