#!/usr/bin/env python3
"""Submit a job script of Snakemake's and print the job's number; what it needs stands in the
script.
"""

import json
import re
import sys
from pathlib import Path
from subprocess import run

script = sys.argv[1]
properties = json.loads(
    re.search(r"^# properties = (.*)$", Path(script).read_text(), re.MULTILINE)[1]
)
rule = properties.get("rule", "group")
resources = properties["resources"]
gpus = resources.get("gpu", 0)
Path(".snakemake/cluster_logs").mkdir(parents=True, exist_ok=True)
command = [
    "sbatch",
    "--parsable",
    f"--job-name=mdpu-{rule}",
    f"--comment=rule_{rule}",
    f"--chdir={Path.cwd()}",
    "--ntasks=1",
    f"--cpus-per-task={properties['threads']}",
    f"--mem={resources['mem_mb']}",
    f"--time={resources['runtime']}",
    "--output=.snakemake/cluster_logs/%j.log",
    *([f"--gres=gpu:{gpus}"] if gpus else []),
    # Yours: "--partition=gpu", "--account=my_account",
]
sys.exit(run([*command, script]).returncode)
