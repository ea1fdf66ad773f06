"""Trains a small network in torch on chess positions: who stands better? One process, or several that share each batch's rows (DDP).

    penstock create config/pipelines/chess_float32.textproto
    python examples/train_torch.py
    torchrun --nproc-per-node 2 examples/train_torch.py      # each rank has its rows of every batch; the gradients are averaged

On several hosts each has a daemon of its own, whose ranks are those of that host; each daemon's spec has another `shard` of the data.

Tensors are views of the daemon's memory, and nothing is fetched in this process.
"""

import argparse
import itertools
import os

import torch
import torch.distributed as dist

import penstock.torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(8 * 8 * 24 + 10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def forward(self, board, flags):
        return torch.tanh(self.layers(torch.cat([board.flatten(1), flags], dim=1))).squeeze(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", default="chess_float32")
    parser.add_argument("--socket", help="the daemon's socket, if it is not the default one")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = Model()
    options = {}
    rank, world_size = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    if world_size > 1:
        dist.init_process_group("gloo")
        model = torch.nn.parallel.DistributedDataParallel(model)
        # The daemon's ranks are the processes of its host.
        options = {"rank": int(os.environ["LOCAL_RANK"]), "world_size": int(os.environ["LOCAL_WORLD_SIZE"])}
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    losses = []
    loader = penstock.torch.loader(arguments.pipeline, socket=arguments.socket, **options)
    # Each loop over a loader is an epoch.
    for batch in itertools.islice(itertools.chain.from_iterable(itertools.repeat(loader)), arguments.steps):
        loss = torch.nn.functional.mse_loss(model(batch["board"], batch["flags"]), batch["score"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if world_size > 1:
        weights = [parameter.detach().clone() for parameter in model.parameters()]
        for mine in weights:
            first = mine.clone()
            dist.broadcast(first, 0)
            assert torch.equal(first, mine), "the ranks have come apart"
        dist.destroy_process_group()
    if rank == 0:
        tenth = max(1, len(losses) // 10)
        print(f"{len(losses)} steps of {len(batch['score'])} rows, loss {sum(losses[:tenth]) / tenth:.4f} -> {sum(losses[-tenth:]) / tenth:.4f}")


if __name__ == "__main__":
    main()
