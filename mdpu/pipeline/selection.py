"""What a command of `./run` asks for, in a folder of its own.

``./run paper --configfile mine.yaml --config 'datasets=[mnist]'`` selects from the experiment that ``paper`` names.
Each selection has a folder of its own, so that none writes over another and the commands of every page stay valid.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from mdpu.pipeline.config import PAPER, Config, check_config, load_config, merge, parse_value
from mdpu.pipeline.files import REPOSITORY, digest
from mdpu.pipeline.seals import check
from mdpu.pipeline.strict_yaml import load_yaml

# The experiments of `./run`, each with what is laid over the paper's configuration.
EXPERIMENTS: Mapping[str, Sequence[Path]] = {
    "quick": [REPOSITORY / "config" / "quick.yaml"],
    "paper": [],
    "reference": [REPOSITORY / "config" / "reference.yaml"],
}
# Where and with how much to work: such a key selects nothing.
WORKING = ("data_dir", "mirror", "device", "threads", "memory_mb", "checkpoint_seconds")
LONGEST = 60  # characters of a selection's name


def select(experiment: str, files: Sequence[Path], values: Sequence[str]) -> Config:
    """Return the configuration of an experiment with files and ``KEY=VALUE`` laid over it, under a name of its own.

    The name is the one that they give. Without one it is the experiment's, followed by the stem of each file and by the
    text of each value that changes more than how to work: ``paper-mnist``, ``paper-datasets-mnist-svhn``.

    Parameters
    ----------
    experiment : str
        One of `EXPERIMENTS`.
    files : sequence of Path
        Overlays, such as ``mine.yaml``.
    values : sequence of str
        ``KEY=VALUE`` with a YAML value, laid over the files.

    Raises
    ------
    UserError
        If a file is missing or broken, or the configuration is invalid.
    """
    whole = load_config([REPOSITORY / PAPER, *EXPERIMENTS[experiment]])
    overlays = [(file.stem, load_yaml(file)) for file in files] + [(value, parse_value(value)) for value in values]
    for file in files:
        check(file)  # one that the workflow wrote must be unchanged
    config, chosen = whole, []
    for text, overlay in overlays:
        before, config = config, merge(config, overlay)
        if _what(config) != _what(before):
            chosen.append(text)
    if chosen and config["name"] == whole["name"]:
        config = {**config, "name": _name(whole["name"], chosen)}
    check_config(config)
    return config


def _what(config: Config) -> Config:
    """Return what of a configuration decides about results."""
    return {key: value for key, value in config.items() if key not in WORKING}


def _name(name: str, chosen: Sequence[str]) -> str:
    full = re.sub("[^a-z0-9]+", "-", " ".join([name, *chosen]).lower()).strip("-")
    return full if len(full) <= LONGEST else f"{full[: LONGEST - 9].rstrip('-')}-{digest(full)[:8]}"
