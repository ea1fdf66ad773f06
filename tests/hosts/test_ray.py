"""Ray itself: a cluster of three nodes on this machine (ray.cluster_utils), a host in each; a node is removed, and the two hosts that are left go on.

Runs where ray is installed: `./dev test hosts` makes that environment.
"""

import time

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster

import penstock

STEPS, LOST_AT = 40, 14


def dataset():
    return penstock.Dataset.range(2000).shuffle(80, seed=7).map(lambda x: {"n": x}).batch(12)


@ray.remote(num_cpus=1, max_restarts=0)
class Host:
    def __init__(self, hosts, host):
        import penstock
        from penstock._epochs import EpochLoader

        numbers = penstock.Dataset.range(2000).shuffle(80, seed=7).map(lambda x: {"n": x}).batch(12)
        self.loader = EpochLoader(numbers, np.array, {"world": (hosts, host), "guard": None})
        self.batches = iter(self.loader)

    def is_there(self):
        return True

    def step(self):
        return next(self.batches)["n"].tolist()

    def reworld(self, hosts, host, at_step):
        self.loader.reworld(hosts, host, at_step=at_step)


def wait_for_loss(host):
    """Ray takes some ten seconds to see that a node has gone; its actors may answer as long."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            ray.get(host.is_there.remote(), timeout=60)
        except ray.exceptions.RayActorError:
            return
    raise AssertionError("the actor of a node that was removed still answers after a minute")


@pytest.fixture
def cluster():
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [made.add_node(num_cpus=1, resources={f"host_{number}": 1}) for number in range(3)]
    ray.init(address=made.address, log_to_driver=False)
    yield made, nodes
    ray.shutdown()
    made.shutdown()


def test_a_node_is_removed_and_the_others_go_on(cluster):
    made, nodes = cluster
    expected = [batch["n"].tolist() for _, batch in zip(range(STEPS), iter(dataset()))]
    hosts = [Host.options(resources={f"host_{number}": 1}).remote(3, number) for number in range(3)]
    found = []
    for step in range(STEPS):
        if step == LOST_AT:
            made.remove_node(nodes[1], allow_graceful=False)
            wait_for_loss(hosts[1])
            hosts = [hosts[0], hosts[2]]
            ray.get([host.reworld.remote(2, number, LOST_AT) for number, host in enumerate(hosts)])
        found.append(sum(ray.get([host.step.remote() for host in hosts]), []))
    assert found == expected
