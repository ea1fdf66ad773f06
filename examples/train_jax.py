"""Trains a linear model in JAX on chess positions: who stands better?

    penstock create config/pipelines/chess_float32.textproto
    python examples/train_jax.py

On the CPU the arrays are the daemon's memory. With several processes, `sharding=` and `rank`, `world_size` make global arrays of their rows.
"""

import argparse
import itertools

import jax
import jax.numpy as jnp

import penstock.jax


def predict(weights, batch):
    board = batch["board"].reshape(len(batch["board"]), -1)
    return jnp.tanh(board @ weights["board"] + batch["flags"] @ weights["flags"] + weights["bias"])


@jax.jit
def step(weights, batch):
    loss, slope = jax.value_and_grad(lambda weights: jnp.mean((predict(weights, batch) - batch["score"]) ** 2))(weights)
    return jax.tree.map(lambda weight, change: weight - 0.02 * change, weights, slope), loss


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", default="chess_float32")
    parser.add_argument("--socket", help="the daemon's socket, if it is not the default one")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()

    weights = {"board": jnp.zeros(8 * 8 * 24), "flags": jnp.zeros(10), "bias": jnp.zeros(())}
    # Over all local devices; with one it is plain jax.Arrays.
    mesh = jax.sharding.Mesh(jax.local_devices(), ("batch",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    losses = []
    loader = penstock.jax.loader(arguments.pipeline, socket=arguments.socket, sharding=sharding)
    # Each loop over a loader is an epoch.
    for batch in itertools.islice(itertools.chain.from_iterable(itertools.repeat(loader)), arguments.steps):
        weights, loss = step(weights, batch)
        losses.append(float(loss))
    tenth = max(1, len(losses) // 10)
    print(f"{len(losses)} steps of {len(batch['score'])} rows, loss {sum(losses[:tenth]) / tenth:.4f} -> {sum(losses[-tenth:]) / tenth:.4f}")


if __name__ == "__main__":
    main()
