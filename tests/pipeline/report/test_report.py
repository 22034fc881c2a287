"""The report as a browser shows it."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
from browsing import click

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


def test_what_was_not_run_is_said_once(page):
    titles = [item.text for item in page.find_elements(By.CSS_SELECTOR, "#not-run li")]
    assert "Table II: pairs, smaller n table2" in titles
    assert not [title for title in titles if title.startswith(("Tiny", "Figure 1", "Figure 2", "Table I:"))]
    section = page.find_element(By.ID, "not-run").text
    assert "MNIST mnist, Fashion-MNIST fashion-mnist" in section
    assert "./run paper --config 'experiments=[" in section
    for experiment in ("tiny-table", "tiny-curves"):
        assert "ot run" not in page.find_element(By.ID, experiment).text


def test_nothing_of_the_machine_is_in_it(finished):
    """A report is passed on: no folder of whoever made it."""
    text = (finished.results / "report.html").read_text(encoding="utf-8")
    assert str(finished.folder) not in text
    assert str(Path.home()) + "/" not in text
