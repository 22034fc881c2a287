"""Clicks that land, for the tests in a browser."""

from __future__ import annotations

import time


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
