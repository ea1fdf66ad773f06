"""Slurm itself: a controller and three `slurmd -N` on this machine, with a munged of their own, whose `srun` numbers the trainers.

Runs where Debian's slurmctld, slurmd, slurm-client and munge are installed, as root (Slurm's daemons change to the users of jobs).
"""

import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import pytest

import penstock

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PROGRAMS = ("munged", "slurmctld", "slurmd", "srun", "sbatch")
pytestmark = pytest.mark.skipif(not all(map(shutil.which, PROGRAMS)) or os.geteuid() != 0, reason="Slurm is not installed, or this is not root")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"{what} has not come in a minute"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A cluster of three nodes: the environment in which its commands find it."""
    folder = tmp_path_factory.mktemp("slurm")
    # munged lets nobody else write into any folder above its socket.
    here = pathlib.Path("/run") / f"penstock-slurm-{os.getpid()}"
    here.mkdir(mode=0o755)
    key = here / "munge.key"
    key.write_bytes(os.urandom(1024))
    key.chmod(0o400)
    host = socket.gethostname().split(".")[0]
    nodes = "\n".join(f"NodeName=n{number} NodeHostname={host} NodeAddr=127.0.0.1 Port={free_port()} CPUs=2" for number in (1, 2, 3))
    (folder / "state").mkdir()
    (folder / "slurm.conf").write_text(
        f"""ClusterName=penstock
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={free_port()}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={here}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
MpiDefault=none
ReturnToService=2
{nodes}
PartitionName=all Nodes=n[1-3] Default=YES State=UP
"""
    )
    environment = dict(os.environ, SLURM_CONF=str(folder / "slurm.conf"))
    daemons = []

    def start(*command):
        with open(folder / "out.log", "ab") as log:
            daemons.append(subprocess.Popen([str(word) for word in command], env=environment, stdout=log, stderr=log))

    try:
        start("munged", "--foreground", "--force", f"--socket={here}/munge.sock", f"--key-file={key}", f"--pid-file={here}/pid", f"--log-file={here}/log", f"--seed-file={here}/seed")
        until((here / "munge.sock").exists, "munged")
        start("slurmctld", "-D", "-f", folder / "slurm.conf")
        for number in (1, 2, 3):
            start("slurmd", "-D", "-N", f"n{number}", "-f", folder / "slurm.conf")
        until(lambda: subprocess.run(["sinfo", "-h", "-o", "%D %t"], env=environment, capture_output=True, text=True).stdout == "3 idle\n", "a node")
        yield environment
    finally:
        for daemon in reversed(daemons):
            daemon.terminate()
        for daemon in daemons:
            daemon.wait()
        shutil.rmtree(here)


def whole(steps):
    dataset = penstock.Dataset.range(500).shuffle(80, seed=7).map(lambda x: {"n": x}).batch(12)
    return [batch["n"].tolist() for _, batch in zip(range(steps), iter(dataset))]


def joined(folder, hosts):
    said = [json.loads((folder / f"{hosts}-{host}.json").read_text()) for host in range(hosts)]
    assert [one["world"][:2] for one in said] == [[hosts, host] for host in range(hosts)]
    assert len({one["state"]["cursor"] for one in said}) == 1
    return [sum(rows, []) for rows in zip(*(one["rows"] for one in said))], said[0]["state"]


def test_srun_on_three_nodes_and_then_on_two(slurm, tmp_path):
    expected = whole(20)
    subprocess.run(["srun", "-N3", "-n3", sys.executable, HERE / "engine_worker.py", tmp_path, "11"], env=slurm, check=True, timeout=120)
    rows, state = joined(tmp_path, 3)
    assert rows == expected[:11]
    (tmp_path / "state.json").write_text(json.dumps(state))
    subprocess.run(["srun", "-N2", "-n2", sys.executable, HERE / "engine_worker.py", tmp_path, "9", tmp_path / "state.json"], env=slurm, check=True, timeout=120)
    assert joined(tmp_path, 2)[0] == expected[11:]


def test_the_batch_script_begins_one_trainer_on_each_node(slurm, tmp_path):
    environment = dict(slurm, PENSTOCK_PYTHON=sys.executable, PENSTOCK_TRAINER=str(HERE / "engine_worker.py"))
    options = ["--nodes=3", "--cpus-per-task=1", "--mem=0", "--wait", f"--output={tmp_path}/out.log"]
    done = subprocess.run(["sbatch", *options, ROOT / "docker/slurm/train.sbatch", tmp_path, "5"], env=environment, timeout=120)
    assert done.returncode == 0, (tmp_path / "out.log").read_text()
    assert joined(tmp_path, 3)[0] == whole(5)
