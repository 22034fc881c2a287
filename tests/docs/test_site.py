"""The site: built strictly, with every tutorial run, and read in a browser."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from browsing import start_browser
from formulas import find_formulas
from tracked import list_files

from mdpu.pipeline.config import schema
from mdpu.pipeline.files import REPOSITORY

pytest.importorskip("sphinx_gallery")
bs4 = pytest.importorskip("bs4")
Keys = pytest.importorskip("selenium.webdriver").Keys
waits = pytest.importorskip("selenium.webdriver.support.ui")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

WIDTHS = {"desktop": 1280, "phone": 390}
# One page of each sort: made by hand, by the gallery, from docstrings, from the schema, with wide tables.
PAGES = [
    "index",
    "auto_tutorials/index",
    "auto_tutorials/five_minutes",
    "auto_tutorials/photographs",
    "explanation/setting",
    "explanation/bags",
    "explanation/bounds",
    "explanation/findings",
    "how-to/add-dataset",
    "reference/generated/mdpu.estimator.MDPUClassifier",
    "reference/configuration",
    "reference/commands",
    "reference/glossary",
    "search",
]


def find_axe() -> Path | None:
    """Return the axe-core of npm: where `./run test` installs it, or where AXE_CORE says."""
    places = [os.environ.get("AXE_CORE", ""), Path(sys.prefix, "node_modules", "axe-core", "axe.min.js")]
    return next((Path(place) for place in places if place and Path(place).is_file()), None)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, from a copy of the repository: the gallery writes beside its sources."""
    root = tmp_path_factory.mktemp("site")
    for name in list_files("--others", "--exclude-standard"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, root / name)
    strict = ["-W", "--keep-going", "-n", "-q", "-b", "html"]
    command = [sys.executable, "-m", "sphinx", *strict, "docs", "site"]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "site"


def test_every_page_is_in_the_site(site):
    pages = {Path(name).relative_to("docs").with_suffix(".html") for name in list_files() if is_page(name)}
    assert len(pages) > 25
    assert [page for page in pages if not (site / page).is_file()] == []


def is_page(name: str) -> bool:
    """Return whether a file is a page that is written by hand."""
    return name.startswith("docs/") and name.endswith(".md")


def test_every_formula_is_drawn(site):
    pages = [name for name in list_files() if is_page(name) and "/_" not in name]
    for name in pages:
        made = (site / Path(name).relative_to("docs").with_suffix(".html")).read_text(encoding="utf-8")
        article = bs4.BeautifulSoup(made, "html.parser").find("article")
        assert len(article.find_all("math")) == len(find_formulas(REPOSITORY / name)), name
        for code in article.find_all(["code", "pre"]):
            code.decompose()
        assert "$" not in article.text, name


def test_every_tutorial_was_run(site):
    tutorials = {Path(name).stem for name in list_files() if re.fullmatch(r"docs/tutorials/\w+\.py", name)}
    assert "five_minutes" in tutorials
    for name in tutorials:
        text = (site / "auto_tutorials" / f"{name}.html").read_text(encoding="utf-8")
        assert "Total running time of the script:" in text, name


def test_every_key_of_the_schema_is_described(site):
    page = bs4.BeautifulSoup((site / "reference" / "configuration.html").read_text(encoding="utf-8"), "html.parser")
    headings = {heading.find(string=True) for heading in page.find_all("h2")}
    assert set(schema()["properties"]) <= headings
    keys = {term.text: term.find_next("dd").text.strip() for term in page.find_all("dt")}
    options = {f"definitions.experiments.<name>.options.{key}" for key in ("along", "against", "among")}
    assert {"protocol.sampling.broken", "axes.seed", *options} <= keys.keys()
    assert [key for key, text in keys.items() if text.startswith("Takes")] == [], "give these a title in the schema"
    defaults = yaml.safe_load((REPOSITORY / "config.yaml").read_text(encoding="utf-8"))
    assert keys["protocol.training.epochs"].endswith(f"Default: {defaults['protocol']['training']['epochs']}.")


# -- in a browser -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = start_browser(tmp_path_factory.mktemp("chromium"), "allow-file-access-from-files")
    yield driver
    driver.quit()


@pytest.fixture
def opened(request, browser, site):
    """Return what opens a page at a width in a colour scheme."""
    width, scheme = request.param
    metrics = {"width": WIDTHS[width], "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})

    def open_page(name):
        browser.get((site / f"{name}.html").as_uri())
        # A page that loads before the browser applies the scheme hears of it by an event.
        theme = "return document.documentElement.dataset.theme"
        waits.WebDriverWait(browser, 10).until(lambda page: page.execute_script(theme) == scheme)
        return browser

    return open_page


# A colour scheme moves no box.
@pytest.mark.parametrize("opened", [("desktop", "light"), ("phone", "light")], indirect=True, ids="-".join)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_window(opened, name):
    page = opened(name)
    width, window = page.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    assert width <= window


@pytest.mark.parametrize("opened", [("phone", "light")], indirect=True, ids="-".join)
def test_a_wide_formula_scrolls_by_keyboard(opened):
    page = opened("explanation/bounds")
    wide = [box for box in page.find_elements("class name", "formula") if is_wide(page, box)]
    assert wide
    wide[0].send_keys(Keys.ARROW_RIGHT)
    waits.WebDriverWait(page, 5).until(lambda page: page.execute_script("return arguments[0].scrollLeft > 0", wide[0]))


def is_wide(page, box) -> bool:
    """Return whether an element holds more than its width."""
    return page.execute_script("return arguments[0].scrollWidth > arguments[0].clientWidth", box)


@pytest.mark.parametrize("opened", [("desktop", "light")], indirect=True, ids="-".join)
def test_code_is_read_without_scrolling_on_a_desktop(opened, site):
    """Tutorials and explanations: 88 characters fit into the column."""
    pages = [path for folder in ("auto_tutorials", "explanation") for path in sorted((site / folder).glob("*.html"))]
    assert len(pages) > 15
    for path in pages:
        page = opened(str(path.relative_to(site).with_suffix("")))
        blocks = page.find_elements("css selector", "article .highlight pre")
        assert [block.text for block in blocks if is_wide(page, block)] == [], path.name


@pytest.mark.skipif(find_axe() is None, reason="axe-core is missing; ./run test installs it where there is npm")
@pytest.mark.parametrize("opened", [("desktop", "light"), ("phone", "dark")], indirect=True, ids="-".join)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_accessible(opened, name):
    page = opened(name)
    page.execute_script(find_axe().read_text(encoding="utf-8"))
    found = page.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    violations = {
        f"{violation['id']}: {violation['help']}": [node["html"][:200] for node in violation["nodes"][:3]]
        for violation in found["violations"]
    }
    assert violations == {}
    assert len(found["passes"]) > 10


@pytest.mark.parametrize("opened", [("desktop", "light")], indirect=True, ids="-".join)
def test_images_are_shown_and_described(opened):
    for name in ("explanation/setting", "explanation/joint", "auto_tutorials/photographs"):
        page = opened(name)
        images = page.execute_script(
            "return [...document.querySelectorAll('article img')].map(i => [i.alt, i.complete && i.naturalWidth])"
        )
        assert images
        assert [image for image in images if not (image[0] and image[1])] == []
