"""LaTeX tables: their structure by a small parse of its own, and LaTeX itself where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from mdpu.data.pools import DEMANDS
from mdpu.evaluate.sensitivity import ALTERNATIVE, PANEL
from mdpu.kinds.formulas import latex_formulas, loss_rows
from mdpu.kinds.sensitivity.tables import sensitivity_latex
from mdpu.kinds.table import latex_table
from mdpu.report.largest_n import largest_n_latex
from mdpu.report.tables import latex_caption

AWKWARD = r"50 % & more_of $this$ #1 {~^\}"
METHODS = ["ure", "relu", "siamese"]


def cells(*rows):
    return pd.DataFrame(rows, columns=["prior", "dataset", "method", "mean", "std", "diverged"])


PLAIN = cells(("0.4", "mnist", "ure", 80.0, 1.0, 0), ("0.4", "mnist", "relu", 85.0, 0.25, 0))
DIFFERENCES = pd.DataFrame(
    [
        ("n_counts", "tuples", "images", "mnist", 2, 10000, "0.5", method, 84.45, difference, 0.7, diverged)
        for method, difference, diverged in (("ure", -0.27, 0), ("relu", np.nan, 3), ("abs", 1.25, 1))
    ],
    columns=[*ALTERNATIVE, *PANEL, "method", "base_mean", "difference", "std", "diverged"],
)
LARGEST = pd.DataFrame({"dataset": ["mnist"], "tuple_size": 2, "prior": "0.5", "n": 10000}).assign(
    **{f"{fact}_{demand}": value for demand in DEMANDS for fact, value in (("largest", 22119), ("fit", 0.4))}
)
TABLES = {
    "bold": latex_table(PLAIN, {"mnist": "MNIST"}, METHODS[:2], "Bold"),
    "one trial": latex_table(PLAIN.assign(std=np.nan), {"mnist": "MNIST"}, METHODS[:2], "No deviation"),
    "diverged": latex_table(
        PLAIN.assign(mean=[np.nan, 85.0], diverged=[3, 1]), {"mnist": "MNIST"}, METHODS[:2], "Diverged"
    ),
    "not run": latex_table(PLAIN, {"mnist": "MNIST", "svhn": "SVHN"}, METHODS, "Not run", ["R&D_100%", "CIFAR-10"]),
    "awkward names": latex_table(PLAIN, {"mnist": AWKWARD}, METHODS, AWKWARD, [AWKWARD]),
    "several priors": latex_table(
        pd.concat([PLAIN, PLAIN.assign(prior="0.6")]), {"mnist": "MNIST"}, METHODS, "Two priors"
    ),
    "formulas": latex_formulas(loss_rows(), AWKWARD),
    "sensitivity": sensitivity_latex(DIFFERENCES, {"mnist": AWKWARD}, AWKWARD),
    "largest n": largest_n_latex(LARGEST, {"mnist": AWKWARD}),
}


def structure_error(text: str) -> str | None:
    """Return what is wrong with a table's braces, environments, dollars or columns, or None."""
    text = "\n".join(line for line in text.splitlines() if not line.startswith("%"))
    bare = re.sub(r"\\[\\&%$#_{}]", lambda found: "\n" if found[0] == r"\\" else "", text)
    depth = 0
    for character in bare:
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth < 0:
            return "a brace closes that none opened"
    if depth:
        return "a brace is left open"
    if set(bare) & set("#_~%^") - set("_^" if "$" in bare else ""):
        return "a bare special character"
    if bare.count("$") % 2:
        return "a dollar is left open"
    opened = []
    for kind, name in re.findall(r"\\(begin|end)\{(\w+)\}", bare):
        if kind == "begin":
            opened.append(name)
        elif not opened or opened.pop() != name:
            return f"{name} ends that did not begin"
    if opened:
        return f"{opened[-1]} does not end"
    body = re.search(r"\\begin\{tabular\}\{([lr]+)\}\n(.*)\\end\{tabular\}", text, re.DOTALL)
    if body is None:
        return "no tabular"
    for line in body[2].splitlines():
        if re.fullmatch(r"\\(top|mid|bottom)rule", line):
            continue
        if not line.endswith(r"\\"):
            return f"a row that does not end: {line}"
        spanned = sum(int(count) - 1 for count in re.findall(r"\\multicolumn\{(\d+)\}", line))
        if len(re.findall(r"(?<!\\)&", line)) + spanned + 1 != len(body[1]):
            return f"{line} has not the {len(body[1])} columns of its head"
    return None


@pytest.mark.parametrize(
    ("title", "caption"),
    [
        ("Table II: pairs, 7 % of n. Mean.", r"\caption{Pairs, 7 \% of n (Table II of the paper). Mean.}"),
        ("Table I: the losses", r"\caption{The losses (Table I of the paper)}"),
        ("Extended table: pairs", r"\caption{Extended table: pairs}"),
    ],
)
def test_a_table_of_the_paper_is_not_numbered_twice(title, caption):
    assert latex_caption(title) == caption


@pytest.mark.parametrize("name", TABLES)
def test_every_kind_of_table_is_well_formed(name):
    assert structure_error(TABLES[name]) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"\end{tabular}", ""),
        (r"\boldsymbol{", r"\boldsymbol"),
        (r"80.00\pm 1.00$", r"80.00\pm 1.00"),
        (r"MNIST & ", "MNIST "),
        (r"MNIST & ", "MNIST & & "),
        (r"\bottomrule", r"x"),
        (r"\caption{Bold}", r"\caption{Bold 100 % #}"),
    ],
)
def test_the_parse_sees_what_is_broken(old, new):
    broken = TABLES["bold"].replace(old, new)
    assert broken != TABLES["bold"]
    assert structure_error(broken) is not None


def has_latex() -> bool:
    if not (shutil.which("pdflatex") and shutil.which("kpsewhich")):
        return False
    return all(
        subprocess.run(["kpsewhich", f"{package}.sty"], capture_output=True).returncode == 0
        for package in ("booktabs", "amsmath")
    )


@pytest.mark.slow
@pytest.mark.skipif(not has_latex(), reason="pdflatex with booktabs and amsmath is missing")
def test_every_kind_of_table_compiles(tmp_path):
    body = "\n\\clearpage\n".join(TABLES.values())
    head = "\\documentclass{article}\n\\usepackage{booktabs,amsmath}\n\\begin{document}\n"
    document = f"{head}{body}\\end{{document}}\n"
    (tmp_path / "tables.tex").write_text(document, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert (tmp_path / "tables.pdf").stat().st_size > 10_000
