"""Ray Train itself: the workers of a TorchTrainer read their numbers by world="ray" and take helpers, as docs/howto/helpers.md has it.

Runs where ray[train] and torch are installed: `./dev test hosts` makes that environment.
"""

import json
import pathlib
import sys

import numpy as np
import pytest
import ray
from ray.cluster_utils import Cluster
from ray.train import RunConfig, ScalingConfig
from ray.train.torch import TorchTrainer

import penstock
import penstock.ray
from penstock._epochs import EpochLoader

# Its functions go to workers that do not find this file.
ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])


def dataset():
    def work(x):
        return {"n": x, "x": penstock.functions.sum(penstock.functions.random_uniform([30000], seed=1)) + x.astype(np.float32)}

    return penstock.Dataset.range(3000).shuffle(80, seed=7).map(work).batch(12)


def train(config):
    import penstock.torch

    loader = penstock.torch.loader(dataset(), world="ray", helpers=config["workers"])
    rows = [[batch["n"].tolist(), batch["x"].tolist()] for batch in loader]
    said = {"world": loader.world, "rows": rows}
    (pathlib.Path(config["folder"]) / f"{loader.world.host}.json").write_text(json.dumps(said))


@pytest.fixture
def cluster():
    made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    made.add_node(num_cpus=1)
    # An accelerator that nobody asks for: none is here.
    made.add_node(num_cpus=2, num_gpus=1, resources={"trains": 2})
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()


def test_the_workers_of_a_trainer_make_one_stream_with_helpers(cluster, tmp_path):
    alone = [[batch["n"].tolist(), batch["x"].tolist()] for batch in EpochLoader(dataset(), np.array, {})]
    with penstock.ray.workers(1, cpus=1) as workers:
        workers.wait()
        scaling = ScalingConfig(num_workers=2, resources_per_worker={"CPU": 0.5, "trains": 1})
        trainer = TorchTrainer(
            train, train_loop_config={"workers": workers, "folder": str(tmp_path)}, scaling_config=scaling, run_config=RunConfig(storage_path=str(tmp_path / "runs"))
        )
        trainer.fit()
    hosts = [json.loads((tmp_path / f"{host}.json").read_text()) for host in range(2)]
    assert [host["world"] for host in hosts] == [[2, 0, 0, 1], [2, 1, 0, 1]]
    joined = [[sum(parts, []) for parts in zip(*step)] for step in zip(*(host["rows"] for host in hosts))]
    assert joined == alone
