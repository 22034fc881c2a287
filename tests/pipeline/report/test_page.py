"""What a reader can do with a page that compares with the paper, in a browser."""

import itertools
import json
import re
import shutil
import subprocess
from urllib.parse import quote_plus

import numpy as np
import pandas as pd
import pytest
from browsing import click, lay_out, set_up, violations, visit
from contrast import contrast
from scipy import special

from mdpu.pipeline.evaluate.comparison import VERDICTS, Trials, judge_trials
from mdpu.pipeline.evaluate.published import PROPOSED
from mdpu.pipeline.files import read_csv, read_json
from mdpu.pipeline.plan import ROW
from mdpu.pipeline.report.verdicts import LOOKS

Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
By = pytest.importorskip("selenium.webdriver.common.by").By
Select = pytest.importorskip("selenium.webdriver.support.select").Select
WebDriverWait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait

pytestmark = pytest.mark.slow

EPOCHS = ["last-ten", "all", "last", "best"]
CELL = "mnist/base/m2/n10000/prior0.4/ure"
LINK = f"#table2 a.ours[href='#{CELL}']"
SHOWN = "#comparisons-table tbody tr:not([hidden])"


def address(plan, fragment=""):
    return (plan.layout.results / "report.html").resolve().as_uri() + fragment


@pytest.fixture
def page(browser, synthetic):
    """The page as it opens on a desk, without what an earlier reader chose."""
    set_up(browser)
    visit(browser, address(synthetic))
    browser.execute_script("localStorage.clear()")
    yield browser
    assert browser.get_log("browser") == []


@pytest.fixture(scope="module")
def comparison(synthetic):
    rows = read_csv(synthetic.layout.results / "comparison.csv")
    return rows[rows["verdict"] != "not run"]


@pytest.fixture(scope="module")
def hostile(synthetic):
    """A dataset's title that a careless page would take for markup."""
    title = synthetic.dataset("emnist-letters-a-i")["title"]
    assert "<script>" in title
    return title


def visible(page, selector):
    """Return how many elements can be seen."""
    script = (
        "return [...document.querySelectorAll(arguments[0])].filter(part => "
        "part.checkVisibility()).length"
    )
    return page.execute_script(script, selector)


def count(page, selector):
    return len(page.find_elements(By.CSS_SELECTOR, selector))


def column(page, label):
    script = (
        "return [...document.querySelectorAll(arguments[0])].map(cell => cell.textContent.trim())"
    )
    return page.execute_script(script, f"{SHOWN} td[data-label='{label}']")


def test_the_first_screen_answers(page, comparison):
    proposed = comparison[comparison["method"].isin(["ure", "relu", "abs"])]
    reproduced = (proposed["verdict"] == "reproduced").sum()
    headline = page.find_element(By.ID, "headline")
    assert headline.text.startswith(
        f"Of the {len(proposed)} numbers of the paper that were run, {reproduced} are "
    )
    for element in (
        headline,
        page.find_element(By.CSS_SELECTOR, ".findings"),
        page.find_element(By.ID, "forest"),
    ):
        assert element.rect["y"] + element.rect["height"] < 900
    counts = [
        bar.get_attribute("aria-label") for bar in page.find_elements(By.CSS_SELECTOR, ".bar")
    ]
    ure = comparison[comparison["method"] == "ure"]["verdict"].value_counts()
    verdicts = ("reproduced", "close", "inconclusive", "differs")
    assert counts[0] == ", ".join(f"{ure.get(verdict, 0)} {verdict}" for verdict in verdicts)
    assert len(counts) == 6
    assert count(page, "#forest g.forest") == comparison["difference"].notna().sum()
    click(page.find_element(By.CSS_SELECTOR, ".findings a"))  # to the evidence of the first line
    assert set(column(page, "From")) == {"proposed"}


CHOICES = {
    "epochs": EPOCHS,
    "scope": ["whole", "class", "part"],
    "loss": ["logistic", "squared", "hinge"],
}
CHOICES |= {"training": ["protocol", "replacement without"]}
JUDGE = """
const form = document.getElementById("judging");
const verdict = (row) => [row.querySelector("a").hash.slice(1), row.cells[0].dataset.value];
const label = (bar) => [bar.dataset.method, bar.getAttribute("aria-label")];
const look = (mark) => [mark.hash.slice(1), mark.className];
return arguments[0].map((setting) => {
  for (const [name, value] of Object.entries(setting)) form.elements[name].value = value;
  form.dispatchEvent(new Event("input"));
  const rows = [...document.querySelectorAll("#comparisons-table tbody tr")];
  return [
    Object.fromEntries(rows.map(verdict)),
    [...document.querySelectorAll(".bar")].map(label),
    document.getElementById("headline").textContent,
    document.querySelectorAll("#forest g.forest").length,
    [...document.querySelectorAll("#verdict-grid a.mark")].map(look),
  ];
});"""


def judged(comparison, statistics, setting):
    """Return Python's own verdict on every number by a setting of the page's controls."""
    rule = {name: setting[name] for name in ("margin", "wider_margin")} | {
        "level": setting["level"] / 100
    }
    scope = "" if setting["scope"] == "whole" else f"-{setting['scope']}"
    scopes = comparison["method"].map(lambda name: scope if name in ("relu", "abs") else "")
    loss = "" if setting["loss"] == "logistic" else f".{setting['loss']}"
    losses = comparison["method"].map(lambda name: loss if name in PROPOSED else "")
    own = comparison["method"] + scopes + losses  # nobody ran both
    keys = pd.DataFrame({**{axis: comparison[axis] for axis in ROW}, "method": own})
    keys = keys.assign(variant=setting["training"], epochs=setting["epochs"])
    found = keys.merge(statistics, how="left", on=list(keys))
    lost = found["diverged"].fillna(0)
    paper = Trials(comparison["published_mean"], comparison["published_std"], 3)
    ours = Trials(found["mean"], found["std"], found["trials"].fillna(0) - lost)
    verdicts = judge_trials(ours, lost, paper, rule)[3]
    return dict(
        zip(comparison["cell"], np.where(found["trials"].isna(), "not run", verdicts), strict=True)
    )


@pytest.mark.timeout(300)
def test_the_page_judges_by_a_readers_own_reading_as_python_does(page, synthetic, comparison):
    """Two hundred random settings, in one call: rows, bars, grid, forest and headline follow."""
    random = np.random.default_rng(0)
    settings = []
    for _ in range(200):
        choices = {name: str(random.choice(values)) for name, values in CHOICES.items()}
        margin = round(random.uniform(0.1, 3), 3)
        wider_margin = round(margin + random.uniform(0, 3), 3)
        level = round(random.uniform(51, 99.8), 2)
        settings.append({**choices, "margin": margin, "wider_margin": wider_margin, "level": level})
    statistics = read_csv(synthetic.layout.results / "readings.csv")
    page.set_script_timeout(200)
    for setting, shown in zip(settings, page.execute_script(JUDGE, settings), strict=True):
        rows, bars, headline, marks, grid = shown
        expected = judged(comparison, statistics, setting)
        assert rows == expected, setting
        assert dict(grid) == {
            cell: f"mark {'unrun' if own == 'not run' else own}" for cell, own in expected.items()
        }
        named = comparison["cell"].map(expected)
        for method, label in bars:
            own = named[comparison["method"] == method].value_counts()
            assert label == ", ".join(
                f"{own.get(verdict, 0)} {verdict}" for verdict in VERDICTS[:4]
            )
        assert marks == (named != "not run").sum()
        own = named[comparison["method"].isin(PROPOSED)].value_counts()
        assert headline.endswith(f", and {own.get('differs', 0)} differ.")
    click(page.find_element(By.CSS_SELECTOR, "#judging button"))  # as the protocol
    assert column(page, "Verdict") == [
        f"{glyph} {own}" for own in comparison["verdict"] for glyph in LOOKS[own][0]
    ]


def test_the_pages_quantiles_are_students(page):
    freedoms = [1, 1.3, 2, 2.71, 4, 7.5, 30, 400]
    levels = [0.51, 0.8, 0.95, 0.999]
    script = """
        const [freedoms, levels] = arguments;
        return freedoms.map((freedom) => levels.map((level) => rule.student(freedom, level)));
    """
    quantiles = page.execute_script(script, freedoms, levels)

    freedoms, levels = np.meshgrid(freedoms, levels, indexing="ij")
    expected = special.stdtrit(freedoms, (1 + levels) / 2)
    np.testing.assert_allclose(quantiles, expected, rtol=1e-9)


def test_a_number_says_under_which_readings_it_is_reproduced(page, synthetic, comparison):
    relu = CELL.replace("/ure", "/relu")
    statistics = read_csv(synthetic.layout.results / "readings.csv")
    plain = {
        "margin": 1.0,
        "wider_margin": 2.0,
        "level": 95.0,
        "scope": "whole",
        "loss": "logistic",
    }
    changes = [{"scope": one} for one in CHOICES["scope"]] + [
        {"loss": one} for one in CHOICES["loss"][1:]
    ]
    grid = itertools.product(CHOICES["training"], changes, EPOCHS)
    settings = [
        {**plain, "training": training, **change, "epochs": epochs}
        for training, change, epochs in grid
    ]
    verdicts = [judged(comparison, statistics, setting)[relu] for setting in settings]
    click(page.find_element(By.CSS_SELECTOR, f"#table2 a.ours[href='#{relu}']"))
    run = [verdict for verdict in verdicts if verdict != "not run"]
    text = page.find_element(By.ID, "drawer").text
    assert f"Reproduced under {run.count('reproduced')} of {len(run)} readings" in text
    marks = page.find_elements(By.CSS_SELECTOR, "#drawer td .mark")
    looks = [mark.get_attribute("class").split() for mark in marks]
    assert [look[1] for look in looks if "unrun" not in look] == run


def go_to(page, fragment):
    """Follow an address within the page, without waiting for the browser to tell the page."""
    page.execute_script(
        "location.hash = arguments[0]; dispatchEvent(new PopStateEvent('popstate'))", fragment
    )


PANEL = """return arguments[0].map((address) => {
  location.hash = address;
  dispatchEvent(new PopStateEvent("popstate"));
  const drawer = document.getElementById("drawer");
  const terms = [...drawer.querySelectorAll("dl dt")];
  const number = new URLSearchParams(address).get("number");
  const rows = [...document.querySelectorAll("#comparisons-table tbody tr")];
  const row = rows.find((row) => row.querySelector("a").hash.slice(1) === number);
  return {
    verdict: row.querySelector("[data-label=Verdict]").dataset.value,
    facts: Object.fromEntries(terms.map((dt) => [dt.textContent, dt.nextSibling.textContent])),
    trials: drawer.querySelector("svg.strip")?.getAttribute("aria-label") ?? null,
  };
});"""


def test_the_trials_of_a_number_give_the_verdict_that_the_table_shows(page, comparison):
    """Fifty random readings and numbers, each opened by its address."""
    random = np.random.default_rng(1)
    own = comparison[comparison["method"].isin(PROPOSED)].reset_index(drop=True)
    drawn = []
    for _ in range(50):
        choices = {name: str(random.choice(values)) for name, values in CHOICES.items()}
        if choices["scope"] != "whole":
            choices["loss"] = "logistic"  # nobody ran both
        reading = ";".join(f"{name}:{value}" for name, value in choices.items()) + ";level:0.9"
        drawn.append((own.loc[random.integers(len(own))], reading))
    addresses = [f"reading={quote_plus(reading)}&number={row['cell']}" for row, reading in drawn]
    page.set_script_timeout(200)
    found = page.execute_script(PANEL, addresses)
    rule = {"level": 0.9, "margin": 1.0, "wider_margin": 2.0}
    compared = 0
    for (row, reading), shown in zip(drawn, found, strict=True):
        assert shown["facts"]["Verdict"] == shown["verdict"], reading
        if shown["trials"] is None:
            assert shown["verdict"] == "not run", reading
            continue
        trials = np.array(
            [float(value) for value in re.findall(r"[\d.]+(?=,| %)", shown["trials"].split(";")[0])]
        )
        ours = Trials(trials.mean(), trials.std(ddof=1), len(trials))
        paper = Trials(row["published_mean"], row["published_std"], 3)
        assert judge_trials(ours, np.array(0), paper, rule)[3] == shown["verdict"], reading
        assert f"{len(trials)} trials" in shown["facts"]["Ours"]
        compared += 1
    assert compared > 10
    go_to(page, "")


TABLE = """return [...document.querySelectorAll(arguments[0] + " td a.ours")].map((link) => [
  link.hash.slice(1),
  link.textContent,
  link.parentElement.classList.contains("best"),
  link.parentElement.classList.contains("kept"),
]);"""


def caption_of(page, name):
    return page.find_element(By.ID, f"{name}-caption").text


def test_a_tables_numbers_bold_and_caption_are_those_of_the_reading(page, synthetic):
    """And the protocol's again where a reader returns to it; what was run under no other reading is
    marked.
    """
    names = ("table2", "table4", "extended-pairs")
    before = {
        name: (caption_of(page, name), page.execute_script(TABLE, f"#{name}")) for name in names
    }
    go_to(page, "reading=epochs:all;training:replacement+without")
    statistics = read_csv(synthetic.layout.results / "readings.csv").query("epochs == 'all'")
    statistics = statistics[statistics["variant"] == "replacement without"]
    ours = {}
    for row in statistics.to_dict("records"):
        cell = "{dataset}/base/m{tuple_size}/n{n}/prior{prior}/{method}".format_map(row)
        ours[cell] = f"{row['mean']:.2f} ± {row['std']:.2f}"
    shown = page.execute_script(TABLE, "#table2")
    run = [cell for cell, *_ in shown if cell in ours]
    assert run
    for cell, text, best, kept in shown:
        assert text.partition("†")[0] == ours.get(cell, "not run")
        assert not kept
        row = [other for other, *_ in shown if other.rpartition("/")[0] == cell.rpartition("/")[0]]
        means = [float(ours[other].split()[0]) for other in row if other in ours]
        assert best == (len(means) == len(row) and float(ours[cell].split()[0]) == max(means))
    assert "Under your reading, all epochs, without replacement: " in caption_of(page, "table2")
    assert "epochs: all epochs." in caption_of(page, "table2")
    beyond = page.execute_script(TABLE, "#extended-pairs")
    assert {kept for cell, _, _, kept in beyond if cell.endswith(("/ure", "/relu", "/abs"))} == {
        False
    }
    assert {kept for cell, _, _, kept in beyond if cell.endswith("/supervised")} == {True}
    assert "Shaded cells are the protocol’s" in caption_of(page, "extended-pairs")
    click(page.find_element(By.CSS_SELECTOR, "#judging button"))
    after = {
        name: (caption_of(page, name), page.execute_script(TABLE, f"#{name}")) for name in names
    }
    assert after == before


def test_a_reading_has_an_address_that_a_mail_may_encode(page):
    go_to(page, "comparisons%3Fverdict%3Dreproduced")
    select = page.find_element(By.CSS_SELECTOR, "#comparisons select[name=verdict]")
    assert select.get_property("value") == "reproduced"
    go_to(page, "reading=epochs:all")
    assert (
        page.find_element(By.CSS_SELECTOR, "#judging select[name=epochs]").get_property("value")
        == "all"
    )
    click(page.find_element(By.CSS_SELECTOR, "#judging button"))
    assert "reading" not in page.current_url


def test_back_leads_to_the_reading_that_was_chosen_and_no_other_link_leaves_it(page):
    def epochs():
        return page.find_element(By.CSS_SELECTOR, "#judging [name=epochs]").get_property("value")

    go_to(page, "verdict")
    usual = epochs()
    go_to(page, "reading=epochs:all")
    assert epochs() == "all" != usual
    go_to(page, "claims")
    assert epochs() == "all"
    show_all = page.find_element(By.CSS_SELECTOR, "#comparisons .controls button")
    click(show_all)
    assert page.current_url.endswith("#comparisons?reading=epochs%3Aall")
    page.back()
    assert epochs() == "all"
    page.back()
    WebDriverWait(page, 60).until(lambda _: epochs() == usual)


def test_closing_numbers_leads_back_to_where_the_first_was_opened(page):
    def address_is(end):
        WebDriverWait(page, 60).until(lambda _: page.current_url.endswith(end))

    go_to(page, "claims")
    go_to(page, "verdict")
    click(page.find_element(By.CSS_SELECTOR, LINK))
    address_is(f"#{CELL}")
    other = CELL.replace("/ure", "/relu")
    page.execute_script(f"document.querySelector(\"#table2 a.ours[href='#{other}']\").click()")
    address_is(f"#{other}")
    click(page.find_element(By.CSS_SELECTOR, "#drawer .shut"))
    address_is("#verdict")
    page.back()
    address_is("#claims")


def test_an_address_that_asks_for_what_cannot_be_is_told(page):
    """As the controls do."""

    def fault():
        return page.find_element(By.CSS_SELECTOR, "#judging .fault").text

    headline = page.find_element(By.ID, "headline").text
    for text in ("margin:3", "margin:-3", "loss:unheard-of"):
        go_to(page, f"reading={text}")
        assert "cannot be" in fault()
        assert page.find_element(By.ID, "headline").text == headline
    go_to(page, "reading=margin:3;wider_margin:4")
    assert fault() == ""
    assert page.find_element(By.ID, "headline").text != headline


def test_a_margin_that_cannot_be_is_refused_in_words(page):
    fault = page.find_element(By.CSS_SELECTOR, "#judging .fault")
    margin = page.find_element(By.CSS_SELECTOR, "#judging input[name=margin]")
    change = (
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('input', { "
        "bubbles: true }))"
    )
    for value in ("3", "-3", ""):
        page.execute_script(change, margin, value)
        assert fault.text
    page.execute_script(change, margin, "0.5")
    assert not fault.text
    click(page.find_element(By.CSS_SELECTOR, "#judging button"))


def test_the_counts_beside_the_headline_are_choices(page, synthetic, comparison):
    """The table counts equal trials, and what is chosen is judged by all of its own."""
    facts = read_json(synthetic.layout.results / "readings.json")
    rows = page.find_elements(By.CSS_SELECTOR, "#readings-counts tbody tr")
    sizes = {row["numbers"] for row in facts["counts"]}
    shown = VERDICTS[:4] if len(sizes) == 1 else ("numbers", *VERDICTS[:4])
    counts = [[str(row[name]) for name in shown] for row in facts["counts"]]
    assert [row.text.split()[-len(shown) :] for row in rows[: len(counts)]] == counts
    caption = page.find_element(By.ID, "readings-caption").text
    assert (f"Each counts {max(sizes)} numbers" in caption) == (len(sizes) == 1)
    assert len(counts) == 6
    click(rows[1].find_element(By.TAG_NAME, "button"))
    chosen = {
        "margin": 1.0,
        "wider_margin": 2.0,
        "level": 95.0,
        "scope": "whole",
        "loss": "logistic",
    }
    statistics = read_csv(synthetic.layout.results / "readings.csv")
    expected = judged(comparison, statistics, {**chosen, "training": "protocol", "epochs": "all"})
    proposed = (
        comparison.loc[comparison["method"].isin(PROPOSED), "cell"].map(expected).value_counts()
    )
    told = "{} are reproduced, {} close, {} inconclusive, and {} differ."
    told = told.format(*(proposed.get(verdict, 0) for verdict in VERDICTS[:4]))
    assert told in page.find_element(By.ID, "headline").text


def test_a_table_comes_as_the_file_that_it_is(page, synthetic):
    link = page.find_element(By.CSS_SELECTOR, "#table2 a[download='table2.csv']")
    page.execute_script(
        "arguments[0].addEventListener('click', (event) => event.preventDefault())", link
    )
    click(link)
    fetched = "fetch(arguments[0].href).then((answer) => answer.text()).then(arguments[1])"
    assert page.execute_async_script(fetched, link) == synthetic.layout.table("table2").read_text(
        encoding="utf-8"
    )


def test_a_column_sorts_both_ways_and_the_address_keeps_it(page, synthetic):
    def differences():
        return [float(value.replace("−", "-")) for value in column(page, "Difference")]

    before = differences()
    button = page.find_element(By.CSS_SELECTOR, "th[data-key='difference'] button")
    button.send_keys(Keys.ENTER)
    assert differences() == sorted(before) != before
    assert (
        page.find_element(By.CSS_SELECTOR, "th[data-key='difference']").get_attribute("aria-sort")
        == "ascending"
    )
    button.send_keys(Keys.ENTER)
    assert differences() == sorted(before, reverse=True)
    kept = page.current_url
    assert kept.endswith("#comparisons?sort=-difference")
    visit(page, kept)
    assert differences() == sorted(before, reverse=True)
    page.find_element(By.CSS_SELECTOR, "th[data-key='difference'] button").send_keys(Keys.ENTER)
    assert differences() == before


def test_filters_and_search_combine(page, comparison, hostile):
    Select(page.find_element(By.CSS_SELECTOR, ".controls select[name='method']")).select_by_value(
        "siamese"
    )
    Select(
        page.find_element(By.CSS_SELECTOR, ".controls select[name='dataset']")
    ).select_by_visible_text(hostile)
    page.find_element(By.CSS_SELECTOR, ".controls input").send_keys("SIAM margin")
    expected = comparison.query("method == 'siamese' and dataset == 'emnist-letters-a-i'")
    expected = expected[expected["reason"].str.contains("margin")]
    assert 0 < count(page, SHOWN) == len(expected)
    shown = page.find_element(By.CSS_SELECTOR, ".controls output").text
    assert shown == f"{len(expected)} of {len(comparison)} shown"
    assert page.current_url.endswith("?method=siamese&dataset=emnist-letters-a-i&q=SIAM+margin")
    click(page.find_element(By.CSS_SELECTOR, ".controls button"))
    assert count(page, SHOWN) == len(comparison)


def test_a_number_opens_its_cell_by_keyboard(page, synthetic, comparison):
    link = page.find_element(By.CSS_SELECTOR, LINK)
    link.send_keys(Keys.ENTER)
    drawer = page.find_element(By.ID, "drawer")
    assert drawer.is_displayed()
    assert page.current_url.endswith(f"#{CELL}")
    text = drawer.text
    assert text.splitlines()[1] == "MNIST, pairs, n = 10,000, prior 0.4, URE"
    row = comparison.set_index("cell").loc[CELL]
    assert row["verdict"] in text
    assert f"{row['mean']:.2f} ± {row['std']:.2f} %" in text
    assert synthetic.key(synthetic.find_runs(CELL)[1]) in text
    assert "bfloat16 on no device, 2026-01-02" in text
    assert f"./run trace {CELL}" in text
    seeds = [run.seed for run in synthetic.find_runs(CELL)]
    assert seeds
    assert all(f"./run retrain {CELL}/seed{seed}" in text for seed in seeds)
    assert len(drawer.find_elements(By.CSS_SELECTOR, ".curve polyline")) == len(seeds)
    shown = [seed.text for seed in drawer.find_elements(By.CSS_SELECTOR, ".seeds li")]
    assert shown == [f"seed {seed}" for seed in seeds]
    page.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not drawer.is_displayed()
    assert page.switch_to.active_element == link
    assert "#" not in page.current_url


@pytest.mark.parametrize("width", [1280, 390])
def test_the_contents_lead_to_every_section(page, width):
    set_up(page, width)
    targets = [
        link.get_attribute("href").split("#")[1]
        for link in page.find_elements(By.CSS_SELECTOR, "nav a")
    ]
    assert (
        targets
        == [section.get_attribute("id") for section in page.find_elements(By.TAG_NAME, "section")][
            1:
        ]
    )
    for target in targets:
        click(page.find_element(By.CSS_SELECTOR, f"nav a[href='#{target}']"))
        assert page.find_element(By.ID, target).find_element(By.TAG_NAME, "h3").is_displayed()


def test_it_loads_nothing_and_every_link_of_the_page_leads_somewhere(page):
    loaded = page.execute_script(
        "return performance.getEntriesByType('resource').map(entry => entry.name)"
    )
    assert [place for place in loaded if not place.startswith("data:")] == []
    there = set(
        page.execute_script(
            "return Array.from(document.querySelectorAll('[id]'), element => element.id)"
        )
    )
    links = page.execute_script(
        "return Array.from(document.querySelectorAll('a[href^=\"#\"]'), link => link.hash)"
    )
    readings = {link for link in links if link.startswith("#reading=")}
    assert readings
    assert {link[1:].split("?")[0] for link in {*links} - readings} <= there


def test_the_numbers_of_a_table_are_those_of_its_file_and_marked_by_precision(page, synthetic):
    """K-Means multiplies no matrices, so it has no precision to mark."""
    cells = read_csv(synthetic.layout.table("table2"))
    for row in cells[cells["dataset"] == "mnist"].to_dict("records"):
        name = f"mnist/base/m2/n10000/prior{row['prior']}/{row['method']}"
        link = page.find_element(By.CSS_SELECTOR, f"#table2 a.ours[href='#{name}']")
        number, mark, said = link.text.partition("†")
        assert number == f"{row['mean']:.2f} ± {row['std']:.2f}"
        assert (mark, said.strip()) == (
            ("", "") if row["method"] == "kmeans" else ("†", "in mixed precisions")
        )


def test_what_was_not_run_is_said(page):
    section = page.find_element(By.ID, "not-run").text
    assert "Table III: pairs, larger n table3" in section
    assert "Fashion-MNIST fashion-mnist" in section
    assert "Table II:" not in section


@pytest.mark.parametrize("shown", ["ours", "paper", "difference"])
def test_a_table_shows_what_its_reader_chooses(page, shown):
    parts = ("ours", "paper", "difference")
    cell = page.find_element(By.CSS_SELECTOR, LINK).find_element(By.XPATH, "./..")
    assert all(cell.find_element(By.CLASS_NAME, part).is_displayed() for part in parts)
    page.find_element(By.CSS_SELECTOR, f"#table2 input[value='{shown}']").send_keys(Keys.SPACE)
    assert [part for part in parts if cell.find_element(By.CLASS_NAME, part).is_displayed()] == [
        shown
    ]


def page_colours(page):
    style = (
        "const style = getComputedStyle(document.body); return [style.backgroundColor, style.color]"
    )
    numbers = [value.strip("rgb()").split(", ") for value in page.execute_script(style)]
    return ["#" + "".join(f"{int(part):02x}" for part in value) for value in numbers]


def test_light_and_dark_follow_the_system_until_a_reader_chooses(page):
    light = page_colours(page)
    set_up(page, scheme="dark")
    dark = page_colours(page)
    assert light == ["#ffffff", "#1b1f24"]
    assert dark != light
    assert contrast(*dark) > 10
    button = page.find_element(By.ID, "theme")
    button.send_keys(Keys.ENTER)
    assert (button.text, page_colours(page)) == ("Colours: light", light)
    page.refresh()
    assert page_colours(page) == light
    page.find_element(By.ID, "theme").send_keys(Keys.ENTER)
    set_up(page, scheme="light")
    assert page_colours(page) == dark


@pytest.mark.parametrize(
    ("width", "text"), [(1400, 1), (390, 1), (320, 1), (1280, 2), (390, 2), (320, 2)]
)
def test_nothing_but_a_table_scrolls_sideways(page, width, text):
    """A window of 1280 px shows 320 at 400 % (WCAG 1.4.10), and a reader may double the text alone
    (1.4.4).
    """
    set_up(page, width)
    page.execute_script(f"document.documentElement.style.fontSize = '{100 * text}%'")
    lay_out(
        page
        # a section that is laid out only in sight cuts off what is too wide, and nothing would
        # scroll
    )
    root = "document.documentElement"
    wide, window = page.execute_script(f"return [{root}.scrollWidth, {root}.clientWidth]")
    assert wide <= window


def test_paper_has_what_is_unfolded(page):
    """In print no table is wider than its page, and controls, lists and what is beyond the paper
    are left out.
    """
    set_up(page, 1030, media="print")  # A4 across, less its margins
    wide = (
        "return [...document.querySelectorAll('.scroll')].filter(box => box.scrollWidth > "
        "innerWidth).length"
    )
    assert page.execute_script(wide) == 0
    assert not visible(
        page, "ul.cases li, #runs, #comparisons, #bags-size, button:not(th *), select, input, nav"
    )
    assert visible(page, "#table2 td .difference") == count(page, "#table2 td .difference") > 0
    assert visible(page, "#training")
    page.execute_script("document.querySelector('#claims details:has(li)').open = true")
    assert visible(page, "#claims ul.cases li")


def test_everything_is_there_without_a_script(browser, synthetic, comparison):
    set_up(browser)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        visit(browser, address(synthetic), scripted=False)
        assert not browser.find_elements(By.ID, "theme")
        assert not visible(browser, ".downloads, #judging")
        assert not browser.find_elements(By.CSS_SELECTOR, ".controls *")
        assert not browser.find_elements(By.CSS_SELECTOR, "tr[hidden], section[hidden]")
        assert count(browser, "#comparisons-table tbody tr") == len(comparison)
        click(browser.find_element(By.CSS_SELECTOR, "#table2 input[value='paper']"))
        assert not browser.find_element(By.CSS_SELECTOR, "#table2 .ours").is_displayed()
        click(browser.find_element(By.CSS_SELECTOR, "#table2 input[value='all']"))
        click(browser.find_element(By.CSS_SELECTOR, LINK))
        line = browser.find_element(By.CSS_SELECTOR, "#runs tr:target")
        assert line.text.startswith(CELL)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_hostile_names_are_text(page, hostile):
    assert hostile in page.find_element(By.ID, "table4").text
    assert hostile in page.find_element(By.CSS_SELECTOR, "#datasets tbody").text
    scripts = page.find_elements(By.TAG_NAME, "script")
    assert [script.get_attribute("id") for script in scripts] == ["data", ""]
    click(page.find_element(By.CSS_SELECTOR, "#table4 a.ours[href^='#emnist']"))
    assert page.find_element(By.ID, "drawer-title").text.startswith(hostile)


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (320, "dark")])
def test_axe_finds_no_violation(page, checkers, width, scheme):
    set_up(page, width, scheme)
    lay_out(page)
    assert violations(page, checkers) == []
    click(page.find_element(By.CSS_SELECTOR, LINK))
    assert violations(page, checkers, "#drawer") == []


def test_the_nu_validator_finds_no_error(synthetic, checkers):
    if not shutil.which("java"):
        pytest.skip("java is missing")
    jar = checkers / "vnu-jar" / "build" / "dist" / "vnu.jar"
    page = synthetic.layout.results / "report.html"
    done = subprocess.run(
        ["java", "-jar", jar, "--format", "json", page], capture_output=True, text=True
    )
    assert json.loads(done.stderr)["messages"] == []
