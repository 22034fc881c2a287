"""A real SLURM on this machine's loopback: munge, a controller, one node with eight processors and
four pretended GPUs.

Needs Debian's packages slurmctld, slurmd, slurm-client and munge, and root.
"""

import contextlib
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "srun")
# The job step that a job starts does not inherit SLURM_CONF, so the configuration has to be where
# SLURM looks for it.
SYSTEM = Path("/etc/slurm")

CONF = """
ClusterName=loopback
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={base}/munge/munge.socket
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd.pid
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdLogFile={base}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=batch_sched_delay=0,sched_min_interval=0,bf_interval=5
ReturnToService=2
KillWait=2
MinJobAge=3600
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/filetxt
JobCompLoc={base}/log/jobcomp.txt
MailProg=/bin/true
EnforcePartLimits=ALL
SlurmdParameters=config_overrides
GresTypes=gpu
NodeName=localhost NodeAddr=127.0.0.1 CPUs=8 RealMemory=20000 Gres=gpu:4 State=UNKNOWN
PartitionName=main Nodes=localhost Default=YES MaxTime=INFINITE DefMemPerCPU=256 State=UP
"""
# A count without files makes the node invalid.
GRES = "NodeName=localhost Name=gpu File=/dev/null,/dev/zero,/dev/full,/dev/random\n"


def why_not() -> str | None:
    """Return why SLURM cannot be started here, or None."""
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        return f"{', '.join(missing)} not installed"
    if os.geteuid() != 0:
        return "its daemons have to be started by root"
    conf = SYSTEM / "slurm.conf"
    if conf.exists() and not conf.is_symlink():
        return f"{conf} is this machine's own"
    return None


def start(base: Path) -> None:
    """Start SLURM with all of its files below a folder, and return when its node takes jobs."""
    for folder in ("munge", "state", "spool", "log"):
        (base / folder).mkdir(parents=True, mode=0o755)
    (base / "log" / "jobcomp.txt").touch()
    key = base / "munge" / "munge.key"
    key.write_bytes(secrets.token_bytes(1024))
    key.chmod(0o600)
    conf = base / "slurm.conf"
    conf.write_text(
        CONF.format(base=base, user=getpass.getuser(), controller=_free_port(), node=_free_port())
    )
    (base / "gres.conf").write_text(GRES)
    SYSTEM.mkdir(exist_ok=True)
    for name in ("slurm.conf", "gres.conf"):
        (SYSTEM / name).unlink(missing_ok=True)
        (SYSTEM / name).symlink_to(base / name)
    files = {
        "key-file": "key",
        "socket": "socket",
        "pid-file": "pid",
        "log-file": "log",
        "seed-file": "seed",
    }
    munge = [f"--{option}={base}/munge/munge.{suffix}" for option, suffix in files.items()]
    subprocess.run(["munged", "--force", *munge], check=True)
    subprocess.run(["slurmctld", "-f", conf, "-i"], check=True)
    subprocess.run(["slurmd", "-f", conf, "-N", "localhost"], check=True)
    for _ in range(300):
        if (
            subprocess.run(
                ["sinfo", "-h", "-o", "%T"], capture_output=True, text=True
            ).stdout.strip()
            == "idle"
        ):
            return
        time.sleep(0.1)
    logs = "\n".join(log.read_text() for log in (base / "log").glob("*.log"))
    stop(base)
    raise RuntimeError(f"SLURM's node did not come up:\n{logs}")


def stop(base: Path) -> None:
    """Cancel all jobs and end the daemons."""
    subprocess.run(["scancel", "--user", getpass.getuser()], capture_output=True)
    for name in ("slurmd.pid", "slurmctld.pid", "munge/munge.pid"):
        with contextlib.suppress(OSError, ValueError):
            number = int((base / name).read_text())
            os.kill(number, signal.SIGTERM)
            for _ in range(100):
                os.kill(number, 0)
                time.sleep(0.1)
    for name in ("slurm.conf", "gres.conf"):
        if (SYSTEM / name).is_symlink():
            (SYSTEM / name).unlink()


def training_process(job: str) -> int | None:
    """Return the process of a job that trains, once there is one."""
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # ended by now
            words = (folder / "cmdline").read_bytes().split(b"\0")
            environment = (folder / "environ").read_bytes().split(b"\0")
            if (
                words[1:4] == [b"-m", b"mdpu", b"train"]
                and f"SLURM_JOB_ID={job}".encode() in environment
            ):
                return int(folder.name)
    return None


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
