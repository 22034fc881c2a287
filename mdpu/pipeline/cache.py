"""Finished runs, found by what they are made from.

A run's *recipe* is everything that its numbers depend on: the checksums of images and labels, how they are sampled, the
trial, the method, the settings and the version of the training code. Its *fingerprint* is the recipe's digest, known
before anything is drawn or trained. The cache is a folder with a file per fingerprint; runs that are shipped with the
repository are a second layer, one packed file that is only read. Neither knows names of datasets or variants, so runs
that are made alike are trained once, whoever asks for them.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mdpu.errors import UserError
from mdpu.pipeline.code import canonical, training_version
from mdpu.pipeline.files import (
    REPOSITORY,
    atomic,
    digest,
    is_intact,
    read_csv,
    read_json,
    read_seal,
    recording,
    remove,
    write_json,
)
from mdpu.pipeline.plan import TOLD, Plan, Run, TrainJob

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


EQUIVALENCE = REPOSITORY / "results" / "reference" / "equivalence.json"
CHOSEN_BY_HARDWARE = ("bf16", "fp32")  # the precisions that ``auto`` may stand for
ABOUT = b"about"  # key of the Parquet metadata


def recipes_of(
    plan: Plan,
    run: Run,
    content: Mapping[str, str | None],
    rates: tuple[float, float] | None = None,
    precision: str | None = None,
) -> list[dict[str, Any]]:
    """Return the recipes with which a finished run counts, each ready for JSON.

    `content` is that of its dataset, `rates` the learning rate and weight decay that a tuning chose, and `precision`
    the one that is used. Without it there are several recipes where the hardware chooses: then a run counts that other
    hardware trained in another precision.
    """
    settings = plan.flat_settings(run.variant, plan.network(run.dataset))
    training = plan.protocol.variant(run.variant)["training"]
    sampling = {**plan.drawing(run), "prior": run.prior}
    recipe = {
        **content,
        "trial": sampling.pop("trial"),
        "sampling": sampling,
        "method": run.method,
        "loss": run.loss,
        **{key: training[key] for key, usual in TOLD.items() if training[key] != usual},
        "prior_offset": float(training["prior_offset"]),
        "rates": list(rates) if rates else None,
        "settings": settings,
        "code": canonical(training_version(run.method, settings["network"]), declared_versions()),
    }
    asked = precision or settings["precision"]
    chosen = CHOSEN_BY_HARDWARE if asked == "auto" else (asked,)
    return [{**recipe, "settings": {**settings, "precision": precision}} for precision in chosen]


def fingerprint(recipe: Mapping[str, Any]) -> str:
    """Return the digest of a recipe, 32 hexadecimal digits."""
    return sha256(json.dumps(recipe, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]


def rates_of(plan: Plan, runs: Iterable[Run]) -> dict[Run, tuple[float, float] | None]:
    """Return the learning rate and weight decay that tunings chose for runs, None where they are fixed."""

    @cache
    def chosen(tuning: str) -> dict[str, tuple[float, float]]:
        from mdpu.learn.tuning import chosen_rates  # it loads torch, and few plans tune

        methods = [one.method for one in plan.tunings[tuning].runs]
        return chosen_rates(read_csv(plan.layout.tuned(tuning)), methods)

    names = {run: plan.tuning_name(run) for run in runs}
    return {run: chosen(name)[run.method] if name else None for run, name in names.items()}


@cache
def declared_versions() -> dict[str, str]:
    """Return the versions of training code that were declared equal: from each to the one before it."""
    with recording():  # apart: a declaration is no input of the numbers, which stay current when there is another one
        records = read_json(EQUIVALENCE) if EQUIVALENCE.exists() else []
    return {new: old for record in records for new, old in record["versions"].items()}


@dataclass(frozen=True)
class Finished:
    """A finished run: its history, a row per epoch (`mdpu.pipeline.history.run_history`), and what is known about it.

    That is its ``recipe``; the ``origin`` of its training; the SHA-256 of its ``split``, with the ``diagnostics`` of
    how well it follows its law; and the ``sha256`` of the history's values.
    """

    fingerprint: str
    history: pd.DataFrame
    about: dict[str, Any]

    @classmethod
    def of(cls, recipe: Mapping[str, Any], history: pd.DataFrame, **about: Any) -> Finished:
        """Return a run that has just been trained."""
        facts = {"recipe": dict(recipe), **about, "sha256": checksum(history)}
        return cls(fingerprint(recipe), history, json.loads(json.dumps(facts)))

    @property
    def origin(self) -> dict[str, Any]:
        """What trained it, where and when; a record has "(1 threads)"."""
        origin: dict[str, Any] = self.about["origin"]
        return {**origin, "device": origin["device"].replace("(1 threads)", "(1 thread)")}

    def check(self) -> Finished:
        """Return the run itself; raise `UserError` if its recipe is another's or its values have changed."""
        recipe = self.about.get("recipe", {})
        name = f"the finished run {recipe.get('trial')} of {recipe.get('method')} ({self.fingerprint})"
        if fingerprint(recipe) != self.fingerprint:
            raise UserError(f"{name} has the recipe of another run")
        if checksum(self.history) != self.about.get("sha256"):
            raise UserError(f"{name} is not what was written: its values do not match their checksum")
        return self


def checksum(history: pd.DataFrame) -> str:
    """Return the SHA-256 of a history's values; the order of its columns and empty columns do not matter."""
    total = sha256()
    for name in sorted(history.columns):
        values = history[name].to_numpy(np.float64)
        if name == "epoch" or not np.isnan(values).all():
            total.update(name.encode() + b"\0" + values.tobytes())
    return total.hexdigest()


class Cache:
    """Finished runs by fingerprint: a folder, and below it a packed file, as `export` writes it, that is only read."""

    def __init__(self, folder: Path, shipped: Path | None = None) -> None:
        self.folder, self.shipped = folder, shipped

    def path(self, fingerprint: str) -> Path:
        """Return the file of a fingerprint."""
        return self.folder / fingerprint[:2] / f"{fingerprint}.parquet"

    def place(self, fingerprint: str) -> Path:
        """Return the file that a finished run is in."""
        own = self.path(fingerprint)
        return self.shipped if self.shipped and not own.exists() and fingerprint in self._packed else own

    def find(self, fingerprints: Iterable[str]) -> str | None:
        """Return the first of some fingerprints that a layer has, or None."""
        return next((one for one in fingerprints if self.path(one).exists() or one in self._packed), None)

    def load(self, fingerprints: Iterable[str]) -> dict[str, Finished]:
        """Return finished runs by fingerprint; raise `UserError` if one is missing or broken."""
        loaded = {}
        for one in dict.fromkeys(fingerprints):
            if self.path(one).exists():
                loaded[one] = self._read(one)
            elif one in self._packed:
                loaded[one] = _slice(self._table, one, self._packed[one]).check()
            else:
                raise UserError(f"no finished run has the fingerprint {one}; run the workflow again")
        return loaded

    def _read(self, fingerprint: str) -> Finished:
        from pyarrow import ArrowException, parquet

        path = self.path(fingerprint)
        try:
            table = parquet.read_table(path)
            return Finished(fingerprint, table.to_pandas(), json.loads(table.schema.metadata[ABOUT])).check()
        except (OSError, ArrowException, KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} holds no finished run ({_words(error)}); delete it and run again") from None

    def save(self, run: Finished) -> None:
        """Write a finished run into the folder."""
        import pyarrow as pa
        from pyarrow import parquet

        table = pa.Table.from_pandas(run.history, preserve_index=False)
        about = json.dumps(run.about, sort_keys=True).encode()
        with atomic(self.path(run.fingerprint)) as temporary:
            parquet.write_table(table.replace_schema_metadata({ABOUT: about}), temporary)

    def names(self) -> list[str]:
        """Return the fingerprints in the folder."""
        return sorted(file.stem for file in self.folder.glob("??/[!.]*.parquet"))

    def lost(self, fingerprints: Iterable[str]) -> dict[Path, bool]:
        """Return the files of those fingerprints that are in no layer, and whether each is there, but broken."""
        lost = {}
        for one in fingerprints:
            if self.path(one).exists():
                try:
                    self._read(one)
                except UserError:
                    lost[self.path(one)] = True
            elif one not in self._packed:
                lost[self.path(one)] = False
        return lost

    @cached_property
    def _packed(self) -> dict[str, slice]:
        """The rows of each run in the packed file."""
        if self.shipped is None or not self.shipped.exists():
            return {}
        return _rows(read_packed(self.shipped, ["fingerprint"]))

    @cached_property
    def _table(self) -> pa.Table:
        assert self.shipped is not None
        return read_packed(self.shipped)

    def shipped_runs(self) -> Iterator[Finished]:
        """Yield the runs of the packed file."""
        for one, rows in self._packed.items():
            yield _slice(self._table, one, rows)

    def import_runs(self, path: Path) -> tuple[int, int]:
        """Add the runs of a packed file to the folder, all or none; return how many are new and how many were there."""
        table = read_packed(path)
        try:
            runs = [_slice(table, name, rows).check() for name, rows in _rows(table).items()]
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{path} does not hold finished runs ({_words(error)})") from None
        new = [run for run in runs if not self.path(run.fingerprint).exists()]
        for run in new:
            self.save(run)
        return len(new), len(runs) - len(new)


def export(runs: Sequence[Finished], path: Path) -> None:
    """Write finished runs into one packed file, a fifth of their size."""
    import pandas as pd

    if not runs:
        raise UserError("there is no finished run to pack")
    packed = pd.concat(
        [
            run.history.assign(fingerprint=run.fingerprint, about=json.dumps(run.about, sort_keys=True))
            for run in sorted(runs, key=lambda run: run.about["recipe"]["trial"])
        ],
        ignore_index=True,
    )
    measures = packed.select_dtypes("float").columns
    with atomic(path) as temporary:
        packed.to_parquet(
            temporary,
            index=False,
            compression="zstd",
            compression_level=19,
            use_dictionary=[column for column in packed.columns if column not in measures],
            column_encoding=dict.fromkeys(measures, "BYTE_STREAM_SPLIT"),
        )


def read_packed(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Return the rows of a packed file; raise `UserError` if it is missing or broken."""
    from pyarrow import ArrowException, parquet

    try:
        table = parquet.read_table(path, columns=columns)
    except (OSError, ArrowException) as error:
        raise UserError(f"{path} is not a whole file of finished runs ({_words(error)})") from None
    needed = {"fingerprint", "about", "epoch"} if columns is None else set(columns)
    if missing := needed - {*table.column_names}:
        raise UserError(f"{path} does not hold finished runs: it has no column {', '.join(sorted(missing))}")
    return table


def _words(error: Exception) -> str:
    """Return what an error of pyarrow says, which may have several lines, in one."""
    return " ".join(str(error).split()) or type(error).__name__


def _rows(table: pa.Table) -> dict[str, slice]:
    """Return the rows of each fingerprint, which follow one another."""
    runs = table["fingerprint"].value_counts().to_pylist()
    ends = itertools.accumulate(run["counts"] for run in runs)
    return {run["values"]: slice(end - run["counts"], end) for run, end in zip(runs, ends, strict=True)}


def _slice(table: pa.Table, fingerprint: str, rows: slice) -> Finished:
    """Return one run of a packed file, without the measures that only others have."""
    own = table.slice(rows.start, rows.stop - rows.start)
    about = json.loads(own["about"][0].as_py())
    history = own.drop_columns(["fingerprint", "about"]).to_pandas()
    return Finished(fingerprint, own_columns(history), about)


def own_columns(history: pd.DataFrame) -> pd.DataFrame:
    """Return a history without measures that only other runs of its table have: the empty ones after ``accuracy``."""
    place = history.columns.get_loc("accuracy")
    assert isinstance(place, int)
    others = [name for name in history.columns[place + 1 :] if history[name].isna().all()]
    return history.drop(columns=others)


def content_of(plan: Plan, dataset: str) -> dict[str, str] | None:
    """Return the SHA-256 of a dataset's images and labels as they were written, or None while one is not there.

    Whoever reads them compares the files with it.
    """
    seals = {"images": read_seal(plan.layout.images(dataset)), "labels": read_seal(plan.layout.labels(dataset))}
    content = {key: seal.sha256 for key, seal in seals.items() if seal}
    return content if len(content) == len(seals) else None


def recipes(plan: Plan, runs: Sequence[Run], precision: str | None = None) -> dict[Run, list[dict[str, Any]]]:
    """Return the recipes of runs of one dataset, whose images, labels and tunings have to be there."""
    content = content_of(plan, runs[0].dataset)
    if content is None:
        raise UserError(f"the images or labels of {runs[0].dataset} are not there; run the rules that make them")
    rates = rates_of(plan, runs)
    return {run: recipes_of(plan, run, content, rates[run], precision) for run in runs}


def cache_of(plan: Plan) -> Cache:
    """Return the cache of a plan: the folder that all results share, and what is shipped unless it says otherwise."""
    shipped = plan.config["shipped"]
    return Cache(plan.layout.cache, REPOSITORY / shipped if shipped else None)


def manifest(name: str, runs: Mapping[Run, Finished], **facts: Any) -> dict[str, Any]:
    """Return what a training job leaves behind: which finished runs are its own, and who trained them."""
    origins: dict[str, list[str]] = {}
    for run, finished in runs.items():
        origins.setdefault(json.dumps(finished.origin, sort_keys=True), []).append(run.name)
    return {
        "job": name,
        "runs": {run.name: finished.fingerprint for run, finished in runs.items()},
        "trained": [{**json.loads(origin), "runs": names} for origin, names in origins.items()],
        "splits": {
            run.split: {"sha256": finished.about["split"], **finished.about["diagnostics"]}
            for run, finished in runs.items()
        },
        **facts,
    }


def identity(plan: Plan, name: str) -> str:
    """Return a digest of what a training job's runs are made from, contents of images and labels aside.

    It is part of its manifest's name, so a job whose settings or code have changed is another job. Contents go by
    Snakemake's time stamps, and by the fingerprints in the manifest.
    """
    unknown = {"images": None, "labels": None}
    return digest([recipes_of(plan, run, unknown)[0] for run in plan.job(name).runs])


def unfinished(plan: Plan) -> dict[str, list[Run]]:
    """Return the jobs that have something to train, each with its runs that are not finished.

    All runs of a job count as unfinished as long as its images, its labels or the tuning of its rates are not there.
    """
    left, cache = {}, cache_of(plan)
    for name, job in plan.jobs.items():
        found = _finished(plan, job, cache)
        if missing := [run for run in job.runs if not (found and found[run])]:
            left[name] = missing
    return left


def _finished(plan: Plan, job: TrainJob, cache: Cache) -> dict[Run, str | None] | None:
    """Return the fingerprint of each finished run of a job, None for the others; None while it cannot be known."""
    if content_of(plan, job.dataset) is None or not all(map(is_intact, _tunings(plan, job))):
        return None
    made = recipes(plan, job.runs)
    return {run: cache.find(map(fingerprint, made[run])) for run in job.runs}


def _tunings(plan: Plan, job: TrainJob) -> set[Path]:
    return {plan.layout.tuned(one) for run in job.runs if (one := plan.tuning_name(run))}


def adopt(plan: Plan) -> None:
    """Write the manifests of the jobs whose runs are all finished, so that nothing starts for them.

    A manifest whose runs are not all there any more is deleted: its job has to run. What depends on time stamps is
    spared: an adopted manifest is as old as the newest of its inputs.
    """
    cache, layout = cache_of(plan), plan.layout
    for name, job in plan.jobs.items():
        if (found := _finished(plan, job, cache)) is None:
            continue
        path = layout.manifest(name, identity(plan, name))
        if None in found.values():
            remove(path)
            continue
        names = {run.name: one for run, one in found.items()}
        if not is_intact(path) or read_json(path)["runs"] != names:
            finished = cache.load(filter(None, found.values()))
            runs = {run: finished[one] for run, one in found.items() if one}
            write_json(path, manifest(name, runs, reused=len(runs), seconds=0.0))
        inputs = [layout.images(job.dataset), layout.labels(job.dataset), *_tunings(plan, job)]
        inputs += [layout.split(split) for split in job.splits]
        newest = max(file.stat().st_mtime for file in inputs if file.exists())
        if path.stat().st_mtime < newest:
            os.utime(path, (newest, newest))
