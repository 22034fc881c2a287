"""Results as an RO-Crate: one zip with the files, and what made each of them, for archives and other tools.

The profile is Provenance Run Crate (https://w3id.org/ro/wfrun/provenance). Which file was made from which is read from
the seals (`mdpu.pipeline.files`), and who trained a run from the provenance of its job. So the way from a number to
its runs, their splits and the commit that trained them stands in the crate's metadata alone:

- a cell's number is a result of an action whose objects are its runs' numbers;
- a run's number is a result of the action that trained it. Its objects are the split, the labels and the images; the
  version of its instrument is the commit.

Images are named with their checksums, but not included: most have no licence to pass them on. Commands and authors have
an address if ``pyproject.toml`` names the repository's.
"""

from __future__ import annotations

import importlib.metadata
import io
import mimetypes
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from rocrate.model.contextentity import ContextEntity
from rocrate.model.entity import Entity
from rocrate.rocrate import ROCrate

from mdpu.errors import UserError
from mdpu.pipeline.cache import identity
from mdpu.pipeline.check import BESIDE
from mdpu.pipeline.files import (
    REPOSITORY,
    Seal,
    git_commit,
    is_seal,
    read_csv,
    read_json,
    read_seal,
    replacing,
    versions,
)
from mdpu.pipeline.plan import CELL, Plan, cell_name

WORKFLOW_CRATE = "https://w3id.org/workflowhub/workflow-ro-crate/1.0"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/ro/wfrun/provenance/0.5": "Provenance Run Crate",
    WORKFLOW_CRATE: "Workflow RO-Crate",
}
# Of the words below, RO-Crate 1.1 has no `sha256`; this context has it.
RUN_TERMS = "https://w3id.org/ro/terms/workflow-run/context"
SUBJECT = "learning from M-tuple dominant positive and unlabeled data"
LICENCE = "https://spdx.org/licenses/MIT"
BIOSCHEMAS = "https://bioschemas.org/profiles/ComputationalWorkflow/1.0-RELEASE"
SNAKEMAKE, SNAKEMAKE_PAGE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake", "https://snakemake.github.io"
COMPLETED = "http://schema.org/CompletedActionStatus"
LEFT_OUT = BESIDE | {"config"}  # one configuration is added


def write_crate(plan: Plan, path: Path) -> None:
    """Write the results of a plan, with their provenance, as a zipped RO-Crate."""
    if not plan.layout.page.exists():
        raise UserError(f"{plan.layout.results} has no report; run the workflow with this configuration first")
    with replacing(path) as temporary:
        _Builder(plan, ROCrate(version="1.1")).build().write_zip(temporary)


class _Builder:
    """A crate in the making."""

    def __init__(self, plan: Plan, crate: ROCrate) -> None:
        self.plan, self.crate = plan, crate
        crate.metadata.extra_contexts.append(RUN_TERMS)
        self.results = plan.layout.results
        self._tools: dict[str, list[Entity]] = {}  # by command, one for each commit
        self._controls: list[Entity] = []
        urls = dict(url.split(", ", 1) for url in importlib.metadata.metadata("mdpu").get_all("Project-URL") or [])
        self._address = {"url": urls["Repository"]} if "Repository" in urls else {}
        authors = yaml.safe_load((REPOSITORY / "CITATION.cff").read_text(encoding="utf-8"))["authors"]
        self._authors = [
            self._add(f"#author-{place}", "Organization", name=author["name"], **self._address)
            for place, author in enumerate(authors)
        ]
        git = subprocess.run(["git", "config", "user.name"], cwd=REPOSITORY, capture_output=True, text=True)
        known = git.stdout.strip()
        self._agent = self._add("#agent", "Person", name=known) if known else self._authors[0]

    def build(self) -> ROCrate:
        """Return the crate, with everything in it."""
        self._describe_root()
        workflow = self._add_workflow()
        for path in self._result_files():
            self._file(path)
        actions = [*self._file_actions(), *self._training_actions(), *self._cell_actions()]
        self._add_run(workflow, actions)
        workflow["hasPart"] = [tool for tools in self._tools.values() for tool in tools]
        workflow["step"] = [self._step(command) for command in self._tools]
        for command, tools in self._tools.items():
            self._step(command)["workExample"] = tools
        for entity in self.crate.get_entities():
            for key, value in entity.properties().items():
                if isinstance(value, list) and len(value) == 1:  # RO-Crate writes a list of one as the one
                    entity[key] = value[0]
        return self.crate

    def _describe_root(self) -> None:
        root = self.crate.root_dataset
        self.crate.metadata.append_to("conformsTo", {"@id": WORKFLOW_CRATE})
        root["name"] = f"Results of {self.plan.config['name']}: {SUBJECT}"
        root["description"] = "Tables, figures, verdicts and histories, with the provenance of every number."
        root["author"] = root["publisher"] = self._authors
        text = f"# {root['name']}\n\n{root['description']} `ro-crate-metadata.json` says what made which file.\n"
        facts = {"name": "README.md", "about": root, "encodingFormat": "text/markdown"}
        self.crate.add_file(io.StringIO(text), "README.md", properties=facts)
        terms = "Use it for what you like, and keep the notice."
        root["license"] = self._add(LICENCE, "CreativeWork", name="MIT License", description=terms)
        root["datePublished"] = datetime.now(UTC).date().isoformat()
        root["conformsTo"] = [
            self._add(uri, "CreativeWork", name=name, version=uri.rpartition("/")[2]) for uri, name in PROFILES.items()
        ]

    def _add_workflow(self) -> Entity:
        """Add the Snakefile as the main entity, and the files of rules beside it."""
        folder = REPOSITORY / "workflow"
        for rules in sorted(folder.rglob("*.smk")):
            self._add_file(rules, rules.relative_to(REPOSITORY), "text/plain")
        kinds = ["File", "SoftwareSourceCode", "ComputationalWorkflow", "HowTo"]
        workflow = self._add_file(
            folder / "Snakefile", Path("workflow/Snakefile"), "text/plain", **{"@type": kinds}, **self._address
        )
        workflow["conformsTo"] = self._add(
            BIOSCHEMAS, "CreativeWork", name="ComputationalWorkflow", version="1.0-RELEASE"
        )
        workflow["name"] = "From images to a report"
        workflow["version"] = git_commit()
        workflow["creator"], workflow["license"] = self._authors, self.crate.root_dataset["license"]
        workflow["programmingLanguage"] = self._add(
            SNAKEMAKE, "ComputerLanguage", name="Snakemake", url="https://snakemake.readthedocs.io"
        )
        self.crate.mainEntity = workflow
        return workflow

    def _result_files(self) -> Iterator[Path]:
        """Yield the files of the results, and the configuration that they are of."""
        yield self.plan.layout.write_config()
        for path in sorted(self.results.rglob("*")):
            folder = path.relative_to(self.results).parts[0]
            if path.is_file() and folder not in LEFT_OUT and not path.name.startswith(".") and not is_seal(path):
                yield path

    def _file(self, path: Path) -> Entity:
        """Return the entity of a file: one in the crate, or the name and checksum of one outside the results."""
        seal = read_seal(path)
        checksum = {"sha256": seal.sha256} if seal else {}
        if not path.is_relative_to(self.results):
            return self._add(f"#{path}", "CreativeWork", name=str(path), **checksum)
        kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        return self._add_file(path, path.relative_to(self.results), kind, **checksum)

    def _file_actions(self) -> Iterator[Entity]:
        """Yield an action for each command that made files, with what it read; training has actions of its own."""
        made: dict[tuple[str, str], list[tuple[Path, Seal]]] = {}
        for path in self._result_files():
            seal = read_seal(path)
            if seal and path.relative_to(self.results).parts[0] != "trained" and path != self.plan.layout.config:
                maker = seal.made.get("command", ""), seal.made.get("commit", "unknown")
                made.setdefault(maker, []).append((path, seal))
        for (command, commit), files in made.items():
            inputs = sorted({name for _, seal in files for name in seal.inputs if Path(name).parent.name != "config"})
            yield self._action(
                f"#{files[0][0].relative_to(self.results)}",
                command.partition(" ")[0],
                commit,
                [self._file(Path(name)) for name in inputs],
                [self._file(path) for path, _ in files],
                endTime=max(_written(path) for path, _ in files),
                description=f"mdpu {command}",
            )

    def _training_actions(self) -> Iterator[Entity]:
        """Yield an action for each split and each origin of a job; its results are the runs that it trained."""
        layout = self.plan.layout
        accuracies = dict(read_csv(layout.runs).set_index("run")["accuracy"]) if self.plan.runs else {}
        for job in self.plan.jobs.values():
            made = layout.manifest(job.name, identity(self.plan, job.name))
            runs = {run.name: run for run in job.runs}
            for position, origin in enumerate(read_json(made)["trained"]):
                trained = [runs[name] for name in origin["runs"] if name in runs]
                for split in sorted({run.split for run in trained}):
                    own = [run for run in trained if run.split == split]
                    numbers = [self._number(run.name, accuracies[run.name], "accuracy") for run in own]
                    drawn = layout.split(split)  # not there if all its runs were finished before
                    inputs = [layout.labels(job.dataset), layout.images(job.dataset)]
                    inputs += [drawn] if drawn.exists() else []
                    yield self._action(
                        f"#train/{job.name}/{position}/{split}",
                        "train",
                        str(origin["commit"]),
                        [self._file(path) for path in inputs],
                        [self._file(made), *numbers],
                        endTime=origin["date"],
                        description=_device(origin),
                    )

    def _cell_actions(self) -> Iterator[Entity]:
        """Yield an action for each cell: from the numbers of its runs to their mean."""
        if not self.plan.runs:
            return
        summary = read_csv(self.plan.layout.summary)
        runs: dict[str, list[str]] = {}
        for run in self.plan.runs:
            runs.setdefault(run.cell, []).append(run.name)
        for key, mean in zip(summary[list(CELL)].to_dict("records"), summary["mean"], strict=True):
            cell = cell_name(key)
            numbers = [self.crate.get(f"#{name}") for name in runs.get(cell, [])]
            result = self._number(cell, mean, "mean accuracy")
            yield self._action(
                f"#collect/{cell}",
                "collect",
                git_commit(),
                numbers,
                [result],
                endTime=_written(self.plan.layout.summary),
                description="the mean of the trials",
            )

    def _add_run(self, workflow: Entity, actions: list[Entity]) -> None:
        """Add the run of the workflow, which was organized by Snakemake and consists of the actions."""
        version = versions(["snakemake"]).get("snakemake", "unknown")
        tool = {"name": "Snakemake", "url": SNAKEMAKE_PAGE, "softwareVersion": version}
        snakemake = self._add(SNAKEMAKE_PAGE, "SoftwareApplication", **tool)
        done, page = {"agent": self._agent, "actionStatus": COMPLETED}, self.plan.layout.page
        files = {"object": [self._file(self.plan.layout.config)], "result": [self._file(page)]}
        facts = {"name": f"Run of {self.plan.config['name']}", "instrument": workflow, "endTime": _written(page)}
        done["description"] = f"From images to {page.name}"
        run = self._add("#run", "CreateAction", **facts, **files, **done)
        facts = {"name": "Snakemake runs the jobs", "instrument": snakemake, "object": self._controls, "result": run}
        organized = self._add("#organize", "OrganizeAction", **facts, **done)
        self.crate.root_dataset["mentions"] = [run, organized, *actions]

    def _action(
        self, name: str, command: str, commit: str, inputs: Iterable[Entity], results: Iterable[Entity], **facts: Any
    ) -> Entity:
        version = {"name": f"mdpu {command}", "softwareVersion": commit, **self._address}
        tool = self._add(f"{self._address.get('url', '')}#mdpu-{command}@{commit}", "SoftwareApplication", **version)
        tools = self._tools.setdefault(command, [])
        tools += [] if tool in tools else [tool]
        facts |= {"object": list(inputs), "result": list(results), "agent": self._agent, "actionStatus": COMPLETED}
        action = self._add(name, "CreateAction", name=f"mdpu {name.removeprefix('#')}", instrument=tool, **facts)
        step, title = self._step(command), f"{command} step"
        control = self._add(f"#control/{name[1:]}", "ControlAction", name=title, instrument=step, object=action)
        self._controls.append(control)
        return action

    def _step(self, command: str) -> Entity:
        return self._add(f"#step/{command}", "HowToStep", name=command, position=str(len(self._tools) - 1))

    def _number(self, name: str, value: float, what: str) -> Entity:
        number = "diverged" if pd.isna(value) else float(value)
        return self._add(f"#{name}", "PropertyValue", name=name, propertyID=what, value=number, unitText="percent")

    def _add(self, identifier: str, kind: str, **properties: Any) -> Entity:
        """Add an entity, unless it is there, and return it."""
        if (there := self.crate.get(identifier)) is not None:
            return there
        entity = ContextEntity(self.crate, identifier, properties={"@type": kind})
        for key, value in properties.items():
            entity[key] = value
        return self.crate.add(entity)

    def _add_file(self, source: Path, target: Path, kind: str, **properties: Any) -> Entity:
        """Add a file, unless it is there, and return its entity."""
        if (there := self.crate.get(str(target))) is not None:
            return there
        facts: Mapping[str, Any] = {"encodingFormat": kind, "contentSize": str(source.stat().st_size), **properties}
        return self.crate.add_file(str(source), str(target), properties={"name": str(target), **facts})


def _device(origin: Mapping[str, Any]) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in origin["packages"].items())
    return f"on {origin['device']} in {origin['precision']}, {origin['machine']}, python {origin['python']}, {packages}"


def _written(path: Path) -> str:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
