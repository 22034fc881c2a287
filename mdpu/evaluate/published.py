"""The 504 accuracies of Tables II-V, as data."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

FILE = Path(__file__).with_name("published_tables.csv")


def published_cells() -> pd.DataFrame:
    """Return the published cells.

    Returns
    -------
    DataFrame
        Columns table (2..5), tuple_size, n, prior (canonical string), dataset, method, published_mean,
        published_std (percent) and published_bold.
    """
    cells = pd.read_csv(FILE, dtype={"prior": str})
    return cells.rename(
        columns={
            "n_tuples": "n",
            "mean": "published_mean",
            "std": "published_std",
            "bold": "published_bold",
        }
    ).astype({"published_bold": bool})


def beside_published(cells: pd.DataFrame) -> pd.DataFrame:
    """Return our cells with the published ones beside them where the paper has the same cell.

    The paper's tables are of the protocol as it stands (variant ``base``) and the logistic loss.
    """
    published = published_cells().assign(variant="base", loss="logistic")
    keys = ["dataset", "variant", "tuple_size", "n", "prior", "method", "loss"]
    merged = cells.merge(published, on=keys, how="left", validate="one_to_one")
    merged["difference"] = merged["mean"] - merged["published_mean"]
    return merged
