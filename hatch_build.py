"""What lies outside of the package and travels with a wheel: see `mdpu.pipeline.files.resource`."""

from __future__ import annotations

from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

RESOURCES = (
    "report",
    "config.yaml",
    "config/datasets.yaml",
    "config/studies.yaml",
    "config/readings.yaml",
)


class Resources(BuildHookInterface):
    """Copy the resources into wheels, but not into editable ones: type checkers would take the copy
    for ``mdpu``.
    """

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Tell hatchling which files to include and where; called before each build."""
        if version == "standard":
            build_data["force_include"].update(
                {name: f"mdpu/resources/{name}" for name in RESOURCES}
            )
