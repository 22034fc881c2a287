"""LaTeX tables: their cells, and LaTeX itself where there is one."""

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from mdpu.pipeline.evaluate.published import beside_published
from mdpu.pipeline.plan import CELL
from mdpu.pipeline.report.latex import Best, latex_rows
from mdpu.pipeline.show.formulas import latex_formulas, loss_rows
from mdpu.pipeline.show.table import latex_table

AWKWARD = r'50 % & more_of $this$ #1 {~^\} [x] * "q" Ü é ±2 − × ≤'
METHODS = ["ure", "relu", "abs", "siamese", "contrastive", "kmeans"]
LONG = (
    "Extended table, pairs. Test accuracy in percent, mean ± standard deviation over 3 trials; n = "
    "10,000. " * 2
)


def cells(datasets=("mnist", "svhn"), methods=METHODS, priors=("0.4", "0.5", "0.6")):
    """Return cells of a whole table: some diverged, some with a large deviation."""
    random = np.random.default_rng(0)
    keys = [
        (d, "base", 2, 10000, p, m, "logistic", "dominant")
        for d in datasets
        for p in priors
        for m in methods
    ]
    table = pd.DataFrame(keys, columns=list(CELL))
    table = table.assign(
        mean=random.uniform(50, 99, len(keys)), std=random.uniform(0.01, 12, len(keys)), diverged=0
    )
    table.loc[::17, "diverged"] = 1
    table.loc[::29, ["mean", "std"]] = np.nan
    return table


def beside(table):
    return beside_published(table, {name: name for name in table["dataset"].unique()})


TITLES = {"mnist": "MNIST", "svhn": AWKWARD}
TABLES = {
    "paper": latex_table(cells(), TITLES, METHODS, f"Table II: {LONG}", "paper", ["R&D_100%"]),
    "beside": latex_table(beside(cells()), TITLES, METHODS, LONG, "beside", both=METHODS),
    "formulas": latex_formulas(loss_rows(), AWKWARD, "formulas"),
    "high": latex_rows(
        "high", "High", ["Group", "Row"], [[AWKWARD, str(row)] for row in range(150)]
    ),
}


def test_numbers_are_siunitxs_with_room_for_the_largest():
    rows = [
        ["a", "1,234", "-0.50 ± 0.25", "x1"],
        ["a", "5", "12.25 ± 11.50 (2 diverged)", "2"],
        ["b", "not run", Best("3.00"), ""],
    ]
    text = latex_rows("x", "X", ["Name", "Count", "Change", "Text"], rows)
    assert r"\begin{tabular}{lS[table-format=4]S[table-format=+2.2(4)]r}" in text
    assert [line for line in text.splitlines() if line.endswith(r"\\")][1:] == [
        r"a & 1234 & -0.50 \pm 0.25 & x1 \\",
        r" & 5 & 12.25 \pm 11.50{\rlap{\textsuperscript{2}}} & 2 \\",
        r"b & {not run} & \bfseries 3.00 &  \\",
    ]
    assert "A superscript counts the trials that diverged" in text


def has_latex(*files: str) -> bool:
    return shutil.which("pdflatex") is not None and not any(
        subprocess.run(["kpsewhich", file], capture_output=True).returncode for file in files
    )


@pytest.mark.slow
@pytest.mark.skipif(
    not has_latex("booktabs.sty", "siunitx.sty", "adjustbox.sty"),
    reason="pdflatex or one of its packages is missing",
)
@pytest.mark.parametrize("options", ["", "[twocolumn]"])
def test_every_table_fits_a_paper(options, tmp_path):
    """It compiles, and neither a line is too wide for its column nor a table too high for the
    page.
    """
    body = "\n\\clearpage\n".join(TABLES.values())
    text = f"\\documentclass{options}{{article}}\n\\usepackage{{booktabs,siunitx,adjustbox}}\n"
    (tmp_path / "tables.tex").write_text(
        f"{text}\\begin{{document}}\n{body}\\end{{document}}\n", encoding="utf-8"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert (
        re.findall(
            r"Overfull \\hbox \([^)]*\).*|.*Float too large.*|.*multiply.defined.*", done.stdout
        )
        == []
    )
