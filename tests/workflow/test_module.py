"""The workflow as others meet it: a module, used from another folder, with the files that the
catalog asks for.
"""

import re
import subprocess
import sys

import pytest

SNAKEFILE = """
configfile: "mine.yaml"

module mdpu:
    snakefile:
        {workflow!r}
    config:
        config

use rule * from mdpu as mdpu_*

rule mine:
    default_target: True
    input:
        "out/mine/figures/figure2.svg",
    output:
        "mine.svg",
    shell:
        "cp {{input}} {{output}}"
"""


@pytest.mark.slow
def test_another_workflow_takes_it_as_a_module(fresh_clone, tmp_path):
    """Its configuration holds what differs from the paper's, its own rule reads what a rule of the
    module makes.
    """
    folder = tmp_path / "another"
    folder.mkdir()
    (folder / "Snakefile").write_text(
        SNAKEFILE.format(workflow=str(fresh_clone.folder / "workflow" / "Snakefile"))
    )
    (folder / "mine.yaml").write_text("name: mine\nresults_dir: out\nexperiments: [figure2]\n")

    def snakemake(*arguments: str) -> str:
        command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
        done = subprocess.run(
            command, cwd=folder, env=fresh_clone.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    output = snakemake()
    assert "rule mdpu_drawing" in output
    assert (folder / "mine.svg").read_text().startswith("<?xml")
    assert {path.name for path in folder.iterdir()} == {
        "Snakefile",
        "mine.yaml",
        "mine.svg",
        "out",
        ".snakemake",
    }
    output = snakemake(
        "-n",
        "--config",
        "experiments=[table2]",
        "datasets=[mnist]",
        "shipped=null",
        "--",
        "mdpu_all",
    )
    assert {"mdpu_dataset", "mdpu_train", "mdpu_report"} <= set(re.findall(r"mdpu_\w+", output))
