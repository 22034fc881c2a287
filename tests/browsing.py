"""A browser, and clicks that land."""

import shutil
import time
from pathlib import Path

import pytest


def start_browser(profile: Path, *more: str):
    """Return Chromium without a window, with its console recorded; without Chromium, skip the
    test.
    """
    webdriver = pytest.importorskip("selenium.webdriver")
    browser = shutil.which("chromium")
    driver = shutil.which("chromedriver")
    if not (browser and driver):
        pytest.skip("chromium and chromedriver are missing")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    plain = (
        "headless",
        "no-sandbox",
        "disable-gpu",
        "disable-background-networking",
        "disable-dev-shm-usage",
    )
    for argument in (*plain, "no-first-run", f"user-data-dir={profile}", *more):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(
        options=options, service=webdriver.ChromeService(executable_path=driver)
    )


def click(element):
    """Click an element once it rests in the middle of the window.

    Sections are laid out when they come into sight, so that what lies below them moves after it was
    scrolled to.
    """
    place = (
        "arguments[0].scrollIntoView({block: 'center'}); return "
        "arguments[0].getBoundingClientRect().top"
    )
    before = None
    now = element.parent.execute_script(place, element)
    while before != now:
        time.sleep(0.1)
        before, now = now, element.parent.execute_script(place, element)
    element.click()


def set_up(browser, width=1400, scheme="light", media="screen"):
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": features})


def visit(browser, place, scripted=True):
    """Open an address anew, and wait until the page is there and its script has run: the driver may
    return before.
    """
    wait = pytest.importorskip("selenium.webdriver.support.wait").WebDriverWait(browser, 60)
    browser.get("about:blank")
    browser.get(place)
    ready = "return location.href === arguments[0] && document.readyState === 'complete'"
    wait.until(lambda browser: browser.execute_script(ready, place))
    if scripted:
        wait.until(
            lambda browser: browser.execute_script(
                "return 'ready' in document.documentElement.dataset"
            )
        )


def lay_out(page):
    """Lay out every section, also those that are out of sight."""
    sections = "document.querySelectorAll('.parts > section')"
    page.execute_script(
        f"for (const section of {sections}) section.style.contentVisibility = 'visible'"
    )


def violations(page, checkers, root="body"):
    """Return what axe finds below an element, with the elements that it finds it of."""
    page.execute_script((checkers / "axe-core" / "axe.min.js").read_text(encoding="utf-8"))
    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    page.set_script_timeout(300)
    run = (
        "axe.run(arguments[0], {runOnly: {type: 'tag', values: arguments[1]}, resultTypes: "
        "['violations']})"
    )
    listed = (
        ".then(found => arguments[2](found.violations.map(v => [v.id, v.help, v.nodes.map(n => "
        "n.html)])))"
    )
    return page.execute_async_script(run + listed, root, tags)
