"""The report as a browser shows it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from browsing import click

from mdpu.pipeline.report.verdicts import CLAIMANTS

Keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
By = pytest.importorskip("selenium.webdriver.common.by").By

pytestmark = pytest.mark.slow

WIDTHS = [1280, 390]


@pytest.fixture(params=WIDTHS, ids=[f"{width}px" for width in WIDTHS])
def page(request, browser, finished):
    """The report at one width. A window cannot be made as narrow as a telephone, hence the emulated screen."""
    metrics = {"width": request.param, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    browser.get((finished.results / "report.html").as_uri())
    assert browser.execute_script("return window.innerWidth") == request.param
    return browser


def test_it_loads_without_errors_on_the_console(page):
    assert page.get_log("browser") == []
    assert "tiny" in page.title


def test_it_loads_nothing_from_elsewhere(page):
    loaded = page.execute_script("return performance.getEntriesByType('resource').map(entry => entry.name)")
    assert [address for address in loaded if not address.startswith("data:")] == []


def test_every_image_is_shown_and_described(page):
    images = page.find_elements(By.TAG_NAME, "img")
    assert len(images) >= 1
    for image in images:
        assert page.execute_script("return arguments[0].complete && arguments[0].naturalWidth", image) > 0
        assert image.size["width"] > (30 if image.get_attribute("class") == "formula" else 100)
        assert image.get_attribute("alt")


def test_the_page_does_not_scroll_sideways(page):
    width, window = page.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= window


def test_navigation_leads_to_sections_that_exist(page):
    targets = [link.get_attribute("href").split("#")[1] for link in page.find_elements(By.CSS_SELECTOR, "nav a")]
    assert targets[:6] == ["verdict", "table1", "tiny-table", "figure1", "figure2", "tiny-curves"]
    assert targets[6:9] == ["claims", "ranks", "audit"]
    assert targets == [section.get_attribute("id") for section in page.find_elements(By.TAG_NAME, "section")][1:]
    for target in targets:
        section = page.find_element(By.ID, target)
        click(page.find_element(By.CSS_SELECTOR, f"nav a[href='#{target}']"))
        assert section.find_element(By.TAG_NAME, "h3").is_displayed()


def test_table_values_are_those_of_the_csv(page, finished):
    cells = pd.read_csv(finished.results / "tables/tiny-table.csv", dtype={"prior": str})
    expected = {
        (row["prior"], {"ure": "URE", "abs": "ABS"}[row["method"]]): f"{row['mean']:.2f} ± {row['std']:.2f}"
        for row in cells.to_dict("records")
    }
    found = {}
    for body in page.find_elements(By.CSS_SELECTOR, "#tiny-table tbody"):
        group, row = body.find_elements(By.TAG_NAME, "tr")
        assert row.find_element(By.TAG_NAME, "th").text == "Digits (8x8)"
        for cell in row.find_elements(By.TAG_NAME, "td"):
            number = cell.find_element(By.CSS_SELECTOR, ".ours").text
            found[group.text.removeprefix("Prior "), cell.get_attribute("data-label")] = number
    assert found == expected


def test_a_number_leads_by_keyboard_to_its_runs(page, finished):
    runs = pd.read_csv(finished.results / "runs.csv", dtype={"prior": str})
    drawer = page.find_element(By.ID, "drawer")
    for link in page.find_elements(By.CSS_SELECTOR, "#tiny-table td a.ours"):
        link.send_keys(Keys.ENTER)
        cell = link.get_attribute("href").split("#")[1]
        trials = runs[runs["run"].str.startswith(f"{cell}/seed")].sort_values("seed")
        facts = [fact.text for fact in drawer.find_elements(By.TAG_NAME, "dd")]
        assert [fact.split(" %")[0] for fact in facts] == [f"{accuracy:.2f}" for accuracy in trials["accuracy"]]
        assert all(split in fact for split, fact in zip(trials["split"].str[7:-4], facts, strict=True))
        line = page.find_element(By.ID, cell).find_elements(By.TAG_NAME, "td")
        assert [column.text for column in line[:2]] == [f"{accuracy:.2f}" for accuracy in trials["accuracy"]]
        page.switch_to.active_element.send_keys(Keys.ESCAPE)
        assert not drawer.is_displayed()
        assert link.text.startswith(f"{trials['accuracy'].mean():.2f} ±")


def test_every_link_of_the_page_leads_somewhere(page):
    links = page.find_elements(By.CSS_SELECTOR, "a[href^='#']")
    there = page.execute_script("return Array.from(document.querySelectorAll('[id]'), element => element.id)")
    assert {link.get_attribute("href").split("#")[1].split("?")[0] for link in links} <= set(there)


def test_a_claim_lists_the_cases_where_it_does_not_hold(page, finished):
    cases = pd.read_csv(finished.results / "claims_cases.csv")
    failing = cases[(cases["evidence"] == "ours") & ~cases["holds"]].groupby("claim").size()
    listed = {
        row.get_attribute("id").removeprefix("claim-"): len(row.find_elements(By.CSS_SELECTOR, ".cases li"))
        for row in page.find_elements(By.CSS_SELECTOR, "#claims tbody tr")
    }
    assert {claim: count for claim, count in listed.items() if count} == failing.to_dict()
    assert failing.sum() > 0


def test_what_was_not_run_is_said_once(page):
    titles = [item.text for item in page.find_elements(By.CSS_SELECTOR, "#not-run li")]
    assert "Table II: pairs, smaller n table2" in titles
    assert not [title for title in titles if title.startswith(("Tiny", "Figure 1", "Figure 2", "Table I:"))]
    section = page.find_element(By.ID, "not-run").text
    assert "MNIST mnist, Fashion-MNIST fashion-mnist" in section
    assert "./run paper --config 'experiments=[" in section
    for experiment in ("tiny-table", "tiny-curves"):
        assert "ot run" not in page.find_element(By.ID, experiment).text


def test_learning_rate_and_weight_decay_are_said_to_be_fixed(page):
    section = page.find_element(By.ID, "tuning").text
    assert "Fixed in the configuration" in section
    assert "mlp: learning rate 0.03, weight decay 0.0005" in section


def test_the_best_of_a_row_is_bold(page, finished):
    cells = pd.read_csv(finished.results / "tables/tiny-table.csv", dtype={"prior": str})
    printed = cells["mean"].round(2)
    best = cells[printed == printed.groupby(cells["prior"]).transform("max")]
    assert len(best) < len(cells)
    bold = [
        cell.text
        for cell in page.find_elements(By.CSS_SELECTOR, "#tiny-table td .ours")
        if int(cell.value_of_css_property("font-weight")) >= 600
    ]
    assert bold == [f"{row['mean']:.2f} ± {row['std']:.2f}" for row in best.to_dict("records")]


def test_it_says_whether_the_numbers_are_the_expected_ones(page):
    box = page.find_element(By.ID, "verification")
    assert "Expected numbers confirmed: all 4 cells" in box.text
    said = page.find_element(By.ID, "headline").text
    assert said.startswith("4 of 4 expected numbers confirmed: ")


def test_without_a_published_cell_the_verdict_is_one_sentence(page):
    section = page.find_element(By.ID, "verdict")
    assert "None of the paper’s 504 numbers was run" in section.text
    assert not section.find_elements(By.TAG_NAME, "table")


def test_every_claim_is_shown_with_its_pass_rates(page, finished):
    claims = pd.read_csv(finished.results / "claims.csv")
    claims = claims.sort_values("said_by", key=lambda said: said.map(CLAIMANTS.index), kind="stable")
    checked = claims[claims["status"] != "not run"]
    rows = page.find_elements(By.CSS_SELECTOR, "#claims tbody tr")
    assert [row.get_attribute("id") for row in rows] == [f"claim-{name}" for name in checked["claim"]]
    for row, claim in zip(rows, checked.to_dict("records"), strict=True):
        cells = row.find_elements(By.TAG_NAME, "td")
        status, ours, _, in_single_trials, paper, by_chance = (cell.text.split("\n")[-1] for cell in cells)
        assert status == claim["status"]
        assert ours.startswith(claim["ours"])
        assert in_single_trials == claim["in_single_trials"]
        assert paper.startswith(claim["paper"])
        assert by_chance == ("–" if pd.isna(claim["by_chance"]) else f"{100 * claim['by_chance']:.2g} %")
    unchecked = page.find_elements(By.CSS_SELECTOR, "#claims > details li")
    assert {item.get_attribute("id").removeprefix("claim-") for item in unchecked} == set(claims["claim"]) - set(
        checked["claim"]
    )


def test_the_ranks_of_too_few_methods_are_not_shown(page):
    section = page.find_element(By.ID, "ranks")
    assert section.text.count("fewer than three methods or two complete blocks were run") == 2
    heads = [row.text for row in section.find_elements(By.CSS_SELECTOR, "tbody th")]
    assert len(heads) == 2
    assert all(head.startswith("The paper") for head in heads)


def test_the_audit_lists_every_finding_once(page, finished):
    audit = pd.read_csv(finished.results / "audit.csv")
    shown = page.find_elements(By.CSS_SELECTOR, "#audit tbody tr")
    assert len(shown) == (audit["outcome"] == "anomaly").sum()
    lists = page.find_elements(By.CSS_SELECTOR, "#audit > details")
    listed = [len(part.find_elements(By.TAG_NAME, "li")) for part in lists]
    assert listed == [(audit["outcome"] == outcome).sum() for outcome in ("no case", "not run")]


def test_class_counts_are_those_of_the_labels(page, finished):
    row = page.find_element(By.CSS_SELECTOR, "#datasets tbody tr").find_elements(By.TAG_NAME, "td")
    # 1,797 digits, every fourth for testing.
    counts = [int(cell.get_attribute("textContent").replace(",", "")) for cell in row[2:]]
    assert sum(counts[:2]) == 1348
    assert sum(counts[2:]) == 449
    assert [cell.get_attribute("textContent") for cell in row[:2]] == ["0, 2, 4, 6, 8", "1, 3, 5, 7, 9"]


def test_nothing_of_the_machine_is_in_it(finished):
    """A report is passed on: no folder of whoever made it."""
    text = (finished.results / "report.html").read_text(encoding="utf-8")
    assert str(finished.folder) not in text
    assert str(Path.home()) + "/" not in text
