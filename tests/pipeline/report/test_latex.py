"""LaTeX tables: their structure by a small parse of its own, and LaTeX itself where there is one."""

from __future__ import annotations

import re
import shutil
import subprocess

import numpy as np
import pandas as pd
import pytest

from mdpu.pipeline.evaluate.published import beside_published, published_cells
from mdpu.pipeline.evaluate.sensitivity import ALTERNATIVE, PANEL
from mdpu.pipeline.experiments import choice, priors
from mdpu.pipeline.experiments.formulas import latex_formulas, loss_rows
from mdpu.pipeline.experiments.sensitivity.tables import KEY_TITLES, sensitivity_latex
from mdpu.pipeline.experiments.table import latex_beside, latex_table
from mdpu.pipeline.grid import CELL
from mdpu.pipeline.report.latex import LINES, Best, escape, latex_caption, latex_float, latex_tables

AWKWARD = r"""50 % & more_of $this$ #1 {~^\} [x] * <b> "q" | -- ÜÇłß Ω 数 🙂"""
PAPERS = ["ure", "relu", "abs", "siamese", "contrastive", "kmeans"]
EXTENDED = [
    "ure",
    "relu",
    "abs",
    "relu-class",
    "abs-class",
    "relu-part",
    "abs-part",
    "nnpu",
    "llp",
    "supervised",
    "chance",
]
TITLES = {
    "mnist": "MNIST", "fashion-mnist": "Fashion-MNIST", "emnist-digits": "EMNIST-Digits",
    "emnist-letters": "EMNIST-Letters", "emnist-letters-a-i": "EMNIST-Letters (A-I)",
    "emnist-balanced": "EMNIST-Balanced", "emnist-balanced-digits": "EMNIST-Balanced (0-9)",
    "cifar-10": "CIFAR-10", "svhn": "SVHN",
}  # fmt: skip
AS_PUBLISHED = {name: name.removesuffix("-a-i").removesuffix("-digits") for name in TITLES} | {
    "emnist-digits": "emnist-digits"
}
LONG = "Extended table, pairs. Test accuracy in percent, mean ± standard deviation over 3 trials; n = 10,000. " * 2


def cells(datasets=TITLES, methods=PAPERS, priors=("0.4", "0.5", "0.6")):
    """Return cells of a whole table: some diverged, some with a large deviation."""
    random = np.random.default_rng(0)
    keys = [
        (dataset, "base", 2, 10000, prior, method, "logistic")
        for dataset in datasets
        for prior in priors
        for method in methods
    ]
    table = pd.DataFrame(keys, columns=list(CELL))
    table = table.assign(mean=random.uniform(50, 99, len(keys)), std=random.uniform(0.01, 12, len(keys)), diverged=0)
    table.loc[::17, "diverged"] = 1
    table.loc[::29, ["mean", "std"]] = np.nan
    return table


def beside(table):
    n = (
        table["dataset"]
        .map(AS_PUBLISHED)
        .map({"emnist-letters": 7000, "emnist-balanced": 4000})
        .fillna(10000)
        .astype(int)
    )
    return beside_published(table.assign(n=n), AS_PUBLISHED)


PLAIN = cells(["mnist"], ["ure", "relu"], ["0.4"]).assign(mean=[80.0, 85.0], std=[1.0, 0.25], diverged=0)
DIFFERENCES = pd.DataFrame(
    [
        (key, "tuples", value, "images", size, 10000, "0.5", method, 84.45, difference, 0.7, diverged)
        for size in (2, 3)
        for key in KEY_TITLES
        for value in ("tuples and unlabeled part", "300-300-300")
        for method, difference, diverged in (("ure", -0.27, 0), ("relu", np.nan, 3), ("abs", 11.25, 1))
    ],
    columns=[*ALTERNATIVE[:3], *PANEL, "method", "base_mean", "difference", "std", "diverged"],
)
CHOICES = [
    [size, method, "162", "96.20", "0.07 (1.20)", "0.05 (0.10)", "0.34 (12.12)"]
    for size in ("Pairs", "Triples")
    for method in ("Bag ReLU", "Bag ReLU, prior-free", "Marginal ReLU")
]
PRIORS = [
    ["EMNIST-Letters (A-I)", size, "10,000", prior, "3", "-0.012 (-0.123)", "3 of 3", "6 of 6", "6 of 6", "0"]
    for size in ("Pairs", "4-tuples")
    for prior in ("0.4", "0.6")
]
TABLES = {
    "bold": latex_table(PLAIN, {"mnist": "MNIST"}, ["ure", "relu"], "Bold", "bold"),
    "one-trial": latex_table(
        PLAIN.assign(std=np.nan), {"mnist": "MNIST"}, ["ure", "relu"], "No deviation", "one-trial"
    ),
    "diverged": latex_table(
        PLAIN.assign(mean=[np.nan, 85.0], diverged=[3, 1]), {"mnist": "MNIST"}, ["ure", "relu"], "Diverged", "diverged"
    ),
    "not-run": latex_table(PLAIN, {"mnist": "MNIST", "svhn": "SVHN"}, PAPERS[:4], "Not run", "not-run", ["R&D_100%"]),
    "awkward": latex_table(PLAIN, {"mnist": AWKWARD}, ["ure", "relu"], AWKWARD, "awkward", [AWKWARD]),
    "paper": latex_table(cells(), TITLES, PAPERS, f"Table II: {LONG}", "paper"),
    "extended": latex_table(cells(methods=EXTENDED), TITLES, EXTENDED, LONG, "extended"),
    "paper-beside": latex_beside(beside(cells()), TITLES, PAPERS, LONG, "paper-beside"),
    "extended-beside": latex_beside(beside(cells(methods=EXTENDED)), TITLES, EXTENDED, LONG, "extended-beside"),
    "formulas": latex_formulas(loss_rows(), AWKWARD, "formulas"),
    "sensitivity": sensitivity_latex(DIFFERENCES, {"images": AWKWARD}, AWKWARD, "sensitivity"),
    "choice": latex_tables("choice", choice.EPOCHS, choice.HEADERS["epochs"], CHOICES, names=2, groups=1),
    "choice-variants": latex_tables(
        "choice-variants",
        choice.VARIANTS.format(tried=AWKWARD),
        choice.HEADERS["variants"],
        CHOICES,
        names=2,
        groups=1,
    ),
    "priors": latex_tables("priors", priors.CAPTION, priors.HEADER, PRIORS, names=2, groups=1),
    "awkward-rows": latex_tables("awkward-rows", AWKWARD, [AWKWARD, "b"], [[AWKWARD, "1"], ["[1]", "*"]]),
}


def floats(text):
    """Return the tables of a file, each as a text."""
    return re.findall(r"\\begin\{table\*?\}.*?\\end\{table\*?\}\n", text, re.DOTALL)


def structure_error(text: str) -> str | None:
    """Return what is wrong with the braces, environments, dollars or columns of any table, or None."""
    return next(filter(None, map(table_error, floats(text) or [""])), None)


def table_error(text: str) -> str | None:
    bare = re.sub(r"\\[\\&%$#_{}]", lambda found: "\n" if found[0] == r"\\" else "", text)
    bare = re.sub(r"\\['`^\"~=.urHvc]\{", "{", bare)  # accents
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
    for kind, name in re.findall(r"\\(begin|end)\{(\w+\*?)\}", bare):
        if kind == "begin":
            opened.append(name)
        elif not opened or opened.pop() != name:
            return f"{name} ends that did not begin"
    if opened:
        return f"{opened[-1]} does not end"
    body = re.search(r"\\begin\{tabular\}\{@\{\}(.*)@\{\}\}\n(.*)\\end\{tabular\}", text, re.DOTALL)
    if body is None:
        return "no tabular"
    columns = re.sub(r"\[[^]]*\]|>\{[^}]*\}|p\{[^}]*\}", lambda found: "p" if found[0][0] == "p" else "", body[1])
    for line in body[2].splitlines():
        if re.fullmatch(r"\\(top|mid|bottom)rule|(\\cmidrule\(lr\)\{\d+-\d+\})+", line):
            continue
        if not line.endswith(r"\\"):
            return f"a row that does not end: {line}"
        spanned = sum(int(count) - 1 for count in re.findall(r"\\multicolumn\{(\d+)\}", line))
        if len(re.findall(r"(?<!\\)&", line)) + spanned + 1 != len(columns):
            return f"{line} has not the {len(columns)} columns of its head"
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
        (r"\textbf{", r"\textbf"),
        (r"\bfseries 85.00", r"\bfseries $85.00"),
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


def labels(text):
    return re.findall(r"\\label\{tab:([a-z0-9-]+)\}", text)


@pytest.mark.parametrize("name", TABLES)
def test_every_table_has_a_label_of_its_own(name):
    count = len(floats(TABLES[name]))
    assert labels(TABLES[name]) == ([name] if count == 1 else [f"{name}-{place}" for place in range(1, count + 1)])


def test_pieces_of_a_table_have_every_cell_once():
    """The names of the rows stand in each piece, every other column in one."""
    pieces = floats(TABLES["extended"])
    assert len(pieces) > 1
    heads = [re.findall(r"\{([^{}]+)\}", re.search(r"\\toprule\n(.*)", piece)[1]) for piece in pieces]
    assert {head[0] for head in heads} == {"Dataset"}
    methods = [method for head in heads for method in head[1:]]
    assert len(set(methods)) == len(methods) == len(EXTENDED)
    for piece in pieces:
        assert re.findall(r"Prior 0\.\d", piece) == ["Prior 0.4", "Prior 0.5", "Prior 0.6"]
        assert sum(line.startswith("EMNIST-Letters (A-I) &") for line in piece.splitlines()) == 3


def test_a_table_of_the_paper_is_one_and_its_comparison_two():
    names = {name: title for name, title in TITLES.items() if name == AS_PUBLISHED[name]}
    table = cells(names).assign(std=9.87)
    assert len(floats(latex_table(table, names, PAPERS, LONG, "one"))) == 1
    assert len(floats(latex_beside(beside(table), names, PAPERS, LONG, "two"))) == 2


def test_long_tables_are_cut_between_groups():
    rows = [[f"group {group}", str(row)] for group in range(5) for row in range(12)]
    pieces = floats(latex_tables("long", "Long", ["Group", "Row"], rows, names=1, groups=1))
    assert len(pieces) == 2
    assert [re.findall(r"group \d", piece) for piece in pieces] == [
        ["group 0", "group 1", "group 2"],
        ["group 3", "group 4"],
    ]
    endless = [["one", str(row)] for row in range(100)]
    pieces = floats(latex_tables("endless", "Endless", ["Group", "Row"], endless, names=1, groups=1))
    numbers = [[int(line.split()[0]) for line in piece.splitlines() if line[:1].isdigit()] for piece in pieces]
    assert [number for part in numbers for number in part] == list(range(100))
    assert all(len(part) < LINES for part in numbers)


def test_numbers_are_siunitxs_with_room_for_the_largest():
    rows = [
        ["a", "1,234", "-0.50 ± 0.25", "x1"],
        ["b", "5", "12.25 ± 11.50 (2 diverged)", "2"],
        ["c", "not run", Best("3.00"), ""],
    ]
    (table,) = floats(latex_tables("x", "X", ["Name", "Count", "Change", "Text"], rows))
    assert "@{}lS[table-format=4]S[table-format=+2.2(4)]r@{}" in table
    assert r"\sisetup{" in table
    body = [line for line in table.splitlines() if line[:2] in ("a ", "b ", "c ")]
    assert body == [
        r"a & 1234 & -0.50 \pm 0.25 & x1 \\",
        r"b & 5 & 12.25 \pm 11.50{\rlap{\textsuperscript{2}}} & 2 \\",
        r"c & {not run} & \bfseries 3.00 &  \\",
    ]
    assert "A superscript counts the trials that diverged" in table


def test_ours_stand_beside_the_papers():
    text = latex_beside(
        beside(cells(["mnist"], ["ure", "nnpu"], ["0.4"])), {"mnist": "MNIST"}, ["ure", "nnpu"], "T", "t"
    )
    published = published_cells()
    key = {"dataset": "mnist", "tuple_size": 2, "n": 10000, "prior": "0.4", "method": "ure"}
    (number,) = published[(published[list(key)] == pd.Series(key)).all(axis=1)].to_dict("records")
    assert rf"{number['published_mean']:.2f} \pm {number['published_std']:.2f}" in text
    assert r" & \multicolumn{2}{c}{URE} &  \\" in text
    assert r"{Dataset} & {Ours} & {Paper} & {nnPU} \\" in text


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("a & b_c %", r"a \& b\_c \%"),
        ("\\~^", r"\textbackslash{}\textasciitilde{}\textasciicircum{}"),
        ("Ü é", "\\\"{U} \\'{e}"),
        ("[x] 2 ≥ 1", r"{[}x] 2 $\geq$ 1"),
        ("数", "(U+6570)"),
        ("a\u0308", '\\"{a}'),
    ],
)
def test_text_is_escaped(text, latex):
    assert escape(text) == latex


# -- LaTeX itself ---------------------------------------------------------------------------------

DOCUMENTS = {
    "one column": r"\documentclass{article}",
    "two columns": r"\documentclass[twocolumn]{article}",
    "IEEE": r"\documentclass[journal]{IEEEtran}",
}


def has_latex(*files: str) -> bool:
    found = [subprocess.run(["kpsewhich", file], capture_output=True).returncode for file in files]
    return not any(found)


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="pdflatex is missing")
@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_kind_of_table_fits_a_paper(document, tmp_path):
    """It compiles, and neither a line is too wide for its column nor a table too high for the page."""
    needed = ["booktabs.sty", "siunitx.sty", *(["IEEEtran.cls", "ptmr7t.tfm"] if document == "IEEE" else [])]
    if not has_latex(*needed):
        pytest.skip(f"one of {', '.join(needed)} is missing")
    output = compile_tables(DOCUMENTS[document], TABLES.values(), tmp_path)
    problems = re.findall(r"Overfull \\hbox \([^)]*\).*|.*Float too large.*|.*multiply.defined.*", output)
    assert problems == []


@pytest.mark.slow
@pytest.mark.skipif(
    not (shutil.which("pdflatex") and has_latex("siunitx.sty")), reason="pdflatex or siunitx is missing"
)
def test_a_table_that_is_too_wide_or_too_high_is_noticed(tmp_path):
    wide = latex_tables("wide", "Wide", ["a"] * 12, [["85.00 ± 0.25"] * 12]).replace("table*", "table")
    wide = re.sub(r"\\footnotesize", r"\\Large", wide)
    assert "Overfull \\hbox" in compile_tables(DOCUMENTS["two columns"], [wide], tmp_path)
    high = latex_float("high", "High", "l", [r"x \\"] * 90, wide=False)
    assert "Float too large" in compile_tables(DOCUMENTS["one column"], [high], tmp_path)


def compile_tables(head: str, tables, folder) -> str:
    """Return what pdflatex says of a document with these tables, each on a page."""
    body = "\n\\clearpage\n".join(tables)
    text = f"{head}\n\\usepackage{{booktabs,siunitx}}\n\\begin{{document}}\n{body}\\end{{document}}\n"
    (folder / "tables.tex").write_text(text, encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "tables.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "tables.pdf").stat().st_size > 10_000
    return done.stdout
