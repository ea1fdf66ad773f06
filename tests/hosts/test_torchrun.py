"""torchrun with three agents, of which one is killed in the middle and comes back: whether the others go on as two meanwhile or wait for it, all
steps have the rows of one host."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys

import penstock

HERE = pathlib.Path(__file__).resolve().parent
STEPS = 30
KILL_AT = 11


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def start(folder, port, number):
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes=2:3", "--nproc-per-node=1", "--max-restarts=5", "--rdzv-backend=c10d",
        f"--rdzv-endpoint=127.0.0.1:{port}", "--rdzv-id=hosts", "--monitor-interval=0.1",
        f"--rdzv-conf=is_host={int(number == 0)},last_call_timeout=2,keep_alive_interval=1,keep_alive_max_attempt=3",
        HERE / "torchrun_worker.py", folder, STEPS, KILL_AT,
    ]  # fmt: skip
    # Else torch (2.15) tells the address of the trainers' store in the first rendezvous alone, and an agent that comes later waits for it in vain.
    environment = dict(os.environ, OMP_NUM_THREADS="1", CUDA_VISIBLE_DEVICES="", TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    with open(folder / f"agent-{number}.log", "ab") as log:
        return subprocess.Popen([str(word) for word in command], env=environment, stdout=log, stderr=log, start_new_session=True)


def logs(folder):
    return "\n".join(f"{path.name}:\n{path.read_text()[-3000:]}" for path in sorted(folder.glob("*.log")))


def test_an_agent_is_killed_and_comes_back(tmp_path):
    port = free_port()
    agents = [start(tmp_path, port, number) for number in range(3)]
    try:
        while all(agent.poll() is None for agent in agents):
            try:
                agents[0].wait(0.2)
            except subprocess.TimeoutExpired:
                continue
        lost = [number for number, agent in enumerate(agents) if agent.poll() == -signal.SIGKILL]
        if lost:
            agents[lost[0]] = start(tmp_path, port, 3)
        codes = [agent.wait(300) for agent in agents]
    finally:
        for agent in agents:
            if agent.poll() is None:
                os.killpg(agent.pid, signal.SIGKILL)
                agent.wait()
    assert codes == [0, 0, 0], logs(tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    # A host that comes has the others begun anew wherever they are, also between a step's line and its state: that step is made twice, of the same rows.
    assert sorted({line["step"] for line in lines}) == list(range(STEPS)), logs(tmp_path)
    whole = penstock.Dataset.range(500).shuffle(80, seed=7).map(lambda x: {"n": x}).batch(12)
    expected = [batch["n"].tolist() for _, batch in zip(range(STEPS), iter(whole))]
    for line in lines:
        assert sum(line["rows"], []) == expected[line["step"]], line
    assert (tmp_path / "dies").exists()
    assert {line["hosts"] for line in lines} <= {2, 3}
