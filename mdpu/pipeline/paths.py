"""Where every file is: the one place that knows the paths of inputs and results."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import yaml

from mdpu.pipeline.config import Config
from mdpu.pipeline.data.images import is_path
from mdpu.pipeline.files import digest, write_text
from mdpu.pipeline.seals import is_intact


class Layout:
    """Paths of a configuration's inputs and results.

    Parameters
    ----------
    config : dict
        A checked configuration.

    Attributes
    ----------
    results : Path
        Folder of everything that the configuration makes, except the images.
    images_folder : Path
        Folder of images, shared between configurations.
    data_dir : Path
        Folder of raw downloads.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self.results = Path(config["results_dir"]) / config["name"]
        self.images_folder = Path(config["results_dir"]) / "datasets"
        self.data_dir = Path(config["data_dir"]).expanduser()

    @cached_property
    def config(self) -> Path:
        """Path of the resolved configuration, named by its content; see `write_config`."""
        return self.results / "config" / f"{digest(self._config)}.yaml"

    def write_config(self, current: bool = False) -> Path:
        """Write the resolved configuration for the commands of the workflow.

        Its name contains a digest of the content, so a dry run with other settings never changes the file
        that running jobs read.

        Parameters
        ----------
        current : bool
            Make it the newest of its folder, as the one that the results are of.
        """
        if not is_intact(self.config):
            write_text(self.config, yaml.safe_dump(self._config, sort_keys=False, allow_unicode=True))
        if current:
            self.config.touch()
        return self.config

    def images(self, dataset: str) -> Path:
        """Images of a dataset's source; if the source is a path, their name is ``own/<dataset>``."""
        source = self._config["definitions"]["datasets"][dataset]["source"]
        return self.images_folder / f"{f'own/{dataset}' if is_path(source) else source}.npz"

    def labels(self, dataset: str) -> Path:
        """Labels of a dataset."""
        return self.results / "labels" / f"{dataset}.npz"

    def split(self, split: str) -> Path:
        """Split of a run, by its name."""
        return self.results / "splits" / f"{split}.npz"

    def manifest(self, cohort: str, identity: str) -> Path:
        """The finished runs of a cohort, named also by what they are made from (`mdpu.pipeline.cache.identity`)."""
        return self.results / "trained" / f"{cohort}.{identity}.json"

    def training_log(self, cohort: str, identity: str) -> Path:
        """Log of a cohort's training."""
        return self.results / "logs" / "train" / f"{cohort}.{identity}.log"

    def tuned(self, tuning: str) -> Path:
        """Grid and choice of a tuning."""
        return self.results / "tuning" / f"{tuning}.csv"

    @property
    def summary(self) -> Path:
        """One row per cell."""
        return self.results / "summary.csv"

    @property
    def metrics(self) -> Path:
        """One row per run and epoch, of all runs."""
        return self.results / "metrics.parquet"

    @property
    def cache(self) -> Path:
        """Folder of finished runs, which all results share."""
        return Path(self._config["results_dir"]) / "cache"

    @property
    def checkpoints(self) -> Path:
        """Folder of unfinished training."""
        return self.results / "checkpoints"

    def progress(self, cohort: str) -> Path:
        """How far the training of a cohort is (`mdpu.progress.Steps`)."""
        return self.results / "progress" / f"{cohort}.json"

    @property
    def reported(self) -> Path:
        """Folder of the numbers that the last closing line reported, to say what has changed since."""
        return self.results / "reported"
