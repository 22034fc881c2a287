"""The site: built strictly, with every tutorial run, and read in a browser."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from browsing import start_browser
from tracked import list_files

from mdpu.pipeline.config import schema
from mdpu.pipeline.files import REPOSITORY

pytest.importorskip("sphinx_gallery")
bs4 = pytest.importorskip("bs4")

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

WIDTHS = {"desktop": 1280, "phone": 390}
# One page of each sort: made by hand, by the gallery, from docstrings, from the schema, with wide
# tables.
PAGES = [
    "index",
    "auto_tutorials/five_minutes",
    "explanation/design",
    "explanation/bounds",
    "explanation/findings",
]
PAGES += [
    "how-to/where",
    "reference/generated/mdpu.estimator.MDPUClassifier",
    "reference/configuration",
]
# or that of npm
AXE = Path(os.environ.get("AXE_CORE", Path(sys.prefix, "node_modules", "axe-core", "axe.min.js")))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site, from a copy of the repository: the gallery writes beside its sources."""
    root = tmp_path_factory.mktemp("site")
    for name in list_files("--others", "--exclude-standard"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPOSITORY / name, root / name)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-n",
        "-q",
        "-b",
        "html",
        "docs",
        "site",
    ]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return root / "site"


def test_every_page_and_tutorial_is_in_the_site(site):
    """A tutorial that fails ends the build; a link between pages that leads nowhere does, too."""
    names = [
        name for name in list_files() if re.fullmatch(r"docs/(tutorials/\w+\.py|[^_].*\.md)", name)
    ]
    pages = [name.removeprefix("docs/").replace("tutorials/", "auto_tutorials/") for name in names]
    assert len(pages) > 35
    assert [page for page in pages if not (site / page).with_suffix(".html").is_file()] == []


def test_every_key_of_the_schema_is_described(site):
    page = bs4.BeautifulSoup(
        (site / "reference" / "configuration.html").read_text(encoding="utf-8"), "html.parser"
    )
    assert set(schema()["properties"]) <= {
        heading.find(string=True) for heading in page.find_all("h2")
    }
    keys = {term.text: term.find_next("dd").text.strip() for term in page.find_all("dt")}
    assert {
        "protocol.sampling.broken",
        "definitions.experiments.<name>.options.along",
    } <= keys.keys()
    assert [key for key, text in keys.items() if text.startswith("Takes")] == [], (
        "give these a title in the schema"
    )


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    driver = start_browser(tmp_path_factory.mktemp("chromium"), "allow-file-access-from-files")
    yield driver
    driver.quit()


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_fits_its_window_and_is_accessible(browser, site, name, width):
    metrics = {"width": WIDTHS[width], "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    feature = {
        "name": "prefers-color-scheme",
        "value": {"desktop": "light", "phone": "dark"}[width],
    }
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    browser.get((site / f"{name}.html").as_uri())
    wide, window = browser.execute_script(
        "return [document.documentElement.scrollWidth, window.innerWidth]"
    )
    assert wide <= window
    images = (
        "return [...document.querySelectorAll('article img')].filter(i => !(i.alt && "
        "i.naturalWidth))"
    )
    assert browser.execute_script(images) == []
    if AXE.is_file():
        browser.execute_script(AXE.read_text(encoding="utf-8"))
        found = browser.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
        assert {
            one["id"]: [node["html"][:200] for node in one["nodes"][:3]]
            for one in found["violations"]
        } == {}
