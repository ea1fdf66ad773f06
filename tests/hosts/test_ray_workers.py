"""Helpers on the nodes of a real Ray (ray.cluster_utils): where they run, what they make, a node that is removed, and the end of the job.

Runs where ray is installed: `./dev test hosts` makes that environment. Fault 48 of docs/reliability.md.
"""

import hashlib
import os
import pathlib
import signal
import sys

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

import penstock
import penstock.ray
from penstock import _control
from penstock._epochs import EpochLoader
from programs import eventually

EPOCHS = 12

# Its functions go to actors that do not find this file.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def dataset():
    """Some 10 ms a step on one core, so that there is something to lend."""

    def work(x):
        return {"n": x, "x": penstock.functions.sum(penstock.functions.random_uniform([30000], seed=1)) + x.astype(np.float32)}

    return penstock.Dataset.range(8000).shuffle(100, seed=7).map(work).batch(20)


def digest(batch):
    return hashlib.sha256(np.asarray(batch["n"]).tobytes() + np.asarray(batch["x"]).tobytes()).hexdigest()


def daemons(address):
    """The processes that help at an address."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and f"--serve\0{address}\0".encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            pass
    return found


@pytest.fixture
def cluster():
    """A head without processors, two nodes with some, and one that has an accelerator."""
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [made.add_node(num_cpus=1) for _ in range(2)]
    made.add_node(num_cpus=4, num_gpus=1)
    ray.init(address=made.address, log_to_driver=False)
    yield made, nodes
    ray.shutdown()
    made.shutdown()


def places(workers):
    return dict(ray.get(workers._keeper.places.remote()))


def run_until(loader, expected, is_seen):
    """Epochs until that was seen of the helpers in one of them; what is seen. Where all share two processors, a helper may rest for a whole epoch."""
    for epoch in range(EPOCHS):
        loader.set_epoch(0)
        made, seen = [], {}
        for batch in loader:
            made.append(digest(batch))
            if len(made) % 10 == 0:
                stats = _control.stats(loader.socket, loader._loader.pipeline)
                seen.update({one["address"]: int(one.get("steps", 0)) for one in stats.get("helpers", [])})
        assert made == expected
        if is_seen(seen):
            return seen
    raise AssertionError(f"in {EPOCHS} epochs the helpers have done no more than this: {seen}")


def test_helpers_stand_on_nodes_without_accelerators_and_come_back_when_a_node_dies(cluster):
    made, nodes = cluster
    alone = EpochLoader(dataset(), np.array, {})
    expected = [digest(batch) for batch in alone]
    assert len(expected) == 400
    workers = penstock.ray.workers(2)
    before = workers.wait()
    accelerated = {node["NodeID"] for node in ray.nodes() if "GPU" in node["Resources"]}
    assert len(accelerated) == 1 and len(places(workers)) == 2 and not accelerated & set(places(workers))
    assert all(daemons(address) for address in before)
    loader = EpochLoader(dataset(), np.array, {"helpers": workers})
    run_until(loader, expected, lambda seen: sum(seen.get(address, 0) > 0 for address in before) == 2)

    made.remove_node(nodes[0], allow_graceful=False)
    lost = set(places(workers)) - {node["NodeID"] for node in ray.nodes() if node["Alive"]}
    run_until(loader, expected, lambda seen: True)
    made.add_node(num_cpus=1)
    eventually(lambda: len(set(workers.addresses()) - set(before)) == 1 and len(workers.addresses()) == 2)
    assert not lost & set(places(workers)) and not accelerated & set(places(workers))
    (new,) = set(workers.addresses()) - set(before)
    run_until(loader, expected, lambda seen: seen.get(new, 0) > 0)

    # A daemon that dies has a successor.
    (process,) = daemons(new)
    os.kill(process, signal.SIGKILL)
    eventually(lambda: new not in workers.addresses() and len(workers.addresses()) == 2 and all(map(daemons, workers.addresses())))
    last = workers.addresses()
    loader.close()
    ray.shutdown()
    eventually(lambda: not any(map(daemons, last)))


@ray.remote(num_cpus=1, num_gpus=1)
class Trainer:
    """On the node with the accelerator: it is given the helpers as an argument."""

    def train(self, workers, share):
        loader = EpochLoader(dataset(), np.array, {"helpers": workers, "share": share})
        made, seen, pipeline = [], 0, loader._source
        for _ in range(EPOCHS):
            for batch in loader:
                made.append(digest(batch))
                if len(made) % 10 == 0:
                    stats = _control.stats(loader.socket, pipeline)
                    seen = max(seen, sum(int(one.get("steps", 0)) for one in stats.get("helpers", [])))
            if seen > 0:
                break
        loader.close()
        return made, seen, stats["helpers"]


def test_a_trainer_takes_helpers_by_one_argument_and_their_certificates_let_nobody_else_in(cluster, tmp_path):
    with penstock.ray.workers(1, cpus=1) as workers:
        (address,) = workers.wait()
        trainer = Trainer.remote()
        made, seen, helpers = ray.get(trainer.train.remote(workers, f"ray-{tmp_path.name}"), timeout=300)
        expected = [digest(batch) for batch in EpochLoader(dataset(), np.array, {})]
        assert made[: len(expected)] == expected and seen > 0
        assert [one["address"] for one in helpers] == [address]
        # The same address, and a certificate of another job.
        other = penstock.ray.workers(1, cpus=1)
        stranger = penstock.ray.Workers(workers._keeper, "stranger", 1, other.certificate, other.private_key, workers.authorities)
        loader = EpochLoader(dataset(), np.array, {"helpers": stranger})
        seen = []
        for batch in loader:
            seen += _control.stats(loader.socket, loader._loader.pipeline).get("helpers", [])
        assert all(int(one.get("steps", 0)) == 0 for one in seen)
        assert any(one["state"] == "left out" for one in seen), seen
        other.close()
    eventually(lambda: not daemons(address))


def test_wrong_numbers_and_too_few_nodes_are_told(cluster):
    for wrong in ({"count": 0}, {"count": 1, "cpus": 0}):
        with pytest.raises(penstock.InvalidArgumentError):
            penstock.ray.workers(**wrong)
    with penstock.ray.workers(3) as workers:
        workers.wait(2)
        with pytest.raises(penstock.DeadlineExceededError, match="2 of 3 helpers run after 1 s; no node for 1 of them"):
            workers.wait(timeout=1)
    for wrong in ("10.0.0.7:9466", ["10.0.0.7:9466"]):
        with pytest.raises(TypeError, match="penstock.ray.workers"):
            EpochLoader(dataset(), np.array, {"helpers": wrong})
