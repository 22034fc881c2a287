"""Results as the workflow would leave them, from synthetic histories: accuracies are those of the
paper plus noise.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from mdpu.pipeline import show
from mdpu.pipeline.data.images import ImageSet, write_images
from mdpu.pipeline.data.labels import write_labels
from mdpu.pipeline.data.sheets import write_sheets
from mdpu.pipeline.evaluate.claims import write_claims
from mdpu.pipeline.evaluate.comparison import write_comparison
from mdpu.pipeline.evaluate.provenance import write_collection
from mdpu.pipeline.evaluate.published import published_summary
from mdpu.pipeline.evaluate.rejudge import write_readings
from mdpu.pipeline.job import asked
from mdpu.pipeline.plan import CELL, Plan
from mdpu.pipeline.report.page import write_page
from mdpu.pipeline.report.specification import write_specification
from mdpu.pipeline.store import Stored, write_runs

# images of each stand-in
EPOCHS = 100
IMAGES = 400


def stand_in(classes: list[str], colour: bool, seed: int) -> ImageSet:
    """Return random images of these classes."""
    shape = (32, 32, 3) if colour else (28, 28)
    generator = np.random.default_rng(seed)
    size = (IMAGES, *shape)
    images = generator.integers(256, size=size, dtype=np.uint8)
    labels = np.arange(IMAGES) % len(classes)
    return ImageSet(images, labels, images, labels, classes, "Random stand-ins", "CC0")


def write_data(plan: Plan) -> None:
    """Write images, labels and sheets of stand-ins."""
    for seed, name in enumerate(plan.datasets):
        sides = {
            side: plan.dataset(name).get(side, []) for side in ("positive", "negative", "dropped")
        }
        classes = [str(one) for side in sides.values() for one in side]
        images = plan.layout.images(name)
        labels = plan.layout.labels(name)
        write_images(stand_in(classes, plan.network(name) == "resnet34", seed), images)
        write_labels(images, labels, sides, {})
        write_sheets(images, labels, *plan.layout.sheets(name))


def stored_runs(plan: Plan) -> Iterator[Stored]:
    """Yield every run with a history that ends near the paper's number; those of the second seed
    are in bfloat16.
    """
    keys = pd.DataFrame(list(plan.runs))
    random = np.random.default_rng(1)
    published = published_summary().rename(columns={"dataset": "published"})[
        ["published", *CELL[1:], "mean", "std"]
    ]
    named = keys.assign(published=keys["dataset"].map(plan.published_names), order=range(len(keys)))
    ends = named.merge(published, how="left", on=["published", *CELL[1:]]).sort_values("order")
    final = ends["mean"].fillna(85.0).to_numpy() + ends["std"].fillna(
        1.0
    ).to_numpy() * random.normal(size=len(keys))
    epoch = np.arange(1, EPOCHS + 1)
    risk = 0.7 * np.exp(-epoch / 30) - 0.05
    for run, end in zip(plan.runs, final, strict=True):
        rate = (
            np.clip(
                50 + (end - 50) * (1 - np.exp(-epoch / 8)) + random.normal(size=EPOCHS) * 0.3,
                0,
                100,
            )
            / 100
        )
        rates = dict.fromkeys(
            ("true_positive_rate", "true_negative_rate", "raw_accuracy", "accuracy"), rate
        )
        history = pd.DataFrame({"epoch": epoch, "objective": risk, "risk": risk, **rates})
        made = {
            "precision": "bfloat16" if run.seed == 2 else "float32",
            "date": f"2026-01-0{run.seed}T00:00:00+00:00",
        }
        yield Stored.of(asked(plan.spec(run.cell), run.seed), history, device="no device", **made)


def evaluate(plan: Plan, runs: Path) -> None:
    """Write everything that the workflow makes from finished runs, up to the page."""
    layout = plan.layout
    at = plan.layout.results
    write_collection(plan, [runs], layout.metrics, layout.summary, layout.runs)
    write_comparison(plan, layout.summary, at / "comparison.csv", at / "comparison.json")
    panel = write_readings(
        plan, [runs], at / "readings.csv", at / "readings.json", at / "verdicts.json"
    )
    drawn = layout.figure("readings")
    write_specification(plan, panel, drawn, drawn.with_suffix(".pdf"), layout.table("readings"))
    claims = (at / "claims.csv", at / "claims.json", at / "claims_cases.csv")
    write_claims(plan, layout.metrics, *claims)
    files = {"runs": layout.runs, "metrics": layout.metrics}
    files |= {
        "images": layout.images(plan.datasets[-1]),
        "labels": layout.labels(plan.datasets[-1]),
    }
    for name in plan.experiments:
        show.write(plan, name, files, show.outputs(plan, name))
    write_page(plan, layout.page)


def write_results(plan: Plan) -> None:
    """Write a whole folder of results."""
    write_data(plan)
    runs = plan.layout.root / "packed.parquet"
    write_runs(runs, stored_runs(plan))
    evaluate(plan, runs)
