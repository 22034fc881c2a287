"""A browser, and clicks that land."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest


def start_browser(profile: Path, *more: str):
    """Return Chromium without a window, with its console recorded; without Chromium, skip the test."""
    webdriver = pytest.importorskip("selenium.webdriver")
    browser, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if not (browser and driver):
        pytest.skip("chromium and chromedriver are missing")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    plain = ("headless", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-dev-shm-usage")
    for argument in (*plain, "no-first-run", f"user-data-dir={profile}", *more):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=driver))


def click(element):
    """Click an element once it rests in the middle of the window.

    Sections are laid out when they come into sight, so that what lies below them moves after it was scrolled to.
    """
    place = "arguments[0].scrollIntoView({block: 'center'}); return arguments[0].getBoundingClientRect().top"
    before, now = None, element.parent.execute_script(place, element)
    while before != now:
        time.sleep(0.1)
        before, now = now, element.parent.execute_script(place, element)
    element.click()
