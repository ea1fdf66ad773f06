"""Trains a small network by Keras' model.fit on chess positions: who stands better?

    penstock create config/pipelines/chess_float32.textproto
    python examples/train_keras.py

The tf.data.Dataset's tensors are the daemon's memory.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras

import penstock.tensorflow


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pipeline", default="chess_float32")
    parser.add_argument("--socket", help="the daemon's socket, if it is not the default one")
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()

    keras.utils.set_random_seed(0)
    board, flags = keras.Input((8, 8, 24), name="board"), keras.Input((10,), name="flags")
    hidden = keras.layers.Concatenate()([keras.layers.Flatten()(board), flags])
    hidden = keras.layers.Dense(32, activation="relu")(hidden)
    model = keras.Model([board, flags], keras.layers.Dense(1, activation="tanh")(hidden))
    model.compile(keras.optimizers.Adam(2e-3), "mse")

    epochs = 4
    batches = penstock.tensorflow.dataset(arguments.pipeline, steps=arguments.steps // epochs, socket=arguments.socket)
    data = batches.map(lambda batch: ({"board": batch["board"], "flags": batch["flags"]}, batch["score"]))
    losses = model.fit(data, epochs=epochs, verbose=0).history["loss"]
    print(f"{arguments.steps // epochs * epochs} steps, loss {losses[0]:.4f} -> {losses[-1]:.4f}")


if __name__ == "__main__":
    main()
