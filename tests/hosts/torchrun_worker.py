"""One trainer of test_torchrun.py: takes its rows of every batch, tells the others, and has the first one write down what all of them had.

    torchrun … torchrun_worker.py FOLDER STEPS KILL_AT

The trainer of the second host ends itself and its agent in front of step KILL_AT, in its first life: what a host does that is lost.
"""

import json
import os
import pathlib
import signal
import sys

import torch.distributed as distributed

import penstock
import penstock.torch


def dataset():
    return penstock.Dataset.range(500).shuffle(80, seed=7).map(lambda x: {"n": x}).batch(12)


def main():
    folder, steps, kill_at = pathlib.Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    distributed.init_process_group("gloo")
    loader = penstock.torch.loader(dataset(), world="auto")
    state = folder / "state.json"
    if state.exists():
        loader.load_state_dict(json.loads(state.read_text()))
    dies = folder / "dies"
    for batch in loader:
        step = loader.state_dict()["step"]
        if step == kill_at and loader.world.host == 1 and not dies.exists():
            dies.touch()
            os.kill(os.getppid(), signal.SIGKILL)
            os.kill(os.getpid(), signal.SIGKILL)
        rows = [None] * loader.world.hosts
        distributed.all_gather_object(rows, batch["n"].tolist())
        if loader.world.host == 0:
            with open(folder / "steps.jsonl", "a") as file:
                file.write(json.dumps({"step": step, "hosts": loader.world.hosts, "rows": rows}) + "\n")
            new = folder / "state.new"
            new.write_text(json.dumps(loader.state_dict(), default=bytes.hex))
            new.rename(state)
        # Nobody goes on before the state is there.
        distributed.barrier()
        if step + 1 == steps:
            break
    loader.close()
    distributed.destroy_process_group()


if __name__ == "__main__":
    main()
