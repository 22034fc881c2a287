"""What ``import mdpu`` offers, and what it loads."""

import subprocess
import sys

import pytest

import mdpu


def test_the_package_offers_its_names_and_loads_what_they_need_later():
    program = (
        "import sys, mdpu; print([name for name in ('torch', 'sklearn', 'pandas') if name in "
        "sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
    assert set(mdpu.__all__) <= set(dir(mdpu))
    for name in mdpu.__all__:
        assert getattr(mdpu, name).__name__ == name


def test_groups_are_read_without_loading_torch():
    program = "import sys; from mdpu import read_groups; print('torch' in sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_another_name_is_no_attribute():
    with pytest.raises(AttributeError, match="Classifier"):
        mdpu.Classifier  # noqa: B018
