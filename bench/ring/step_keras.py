"""Keras' side of the case step_time: model.fit over flowers, fed in one of several ways.

    step_keras.py penstock SOCKET SECONDS           penstock.tensorflow.dataset over a running daemon's pipeline
    step_keras.py tf.data FILES SECONDS             the pipeline of bench/peers, autotuned
    step_keras.py PyDataset FILES SECONDS           keras.utils.PyDataset with as many threads as processors
"""

import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))

import keras
import numpy as np
import tensorflow as tf

from step_window import StepWindow

BATCH = 40


def batches(way, source):
    if way == "penstock":
        import penstock.tensorflow

        return penstock.tensorflow.dataset("flowers", socket=source).map(lambda batch: (batch["image"], batch["label"]))
    if way == "tf.data":
        import take_tensorflow

        return take_tensorflow.flowers(source).repeat().prefetch(tf.data.AUTOTUNE)

    from flowers_photos import Photos

    class Flowers(keras.utils.PyDataset):
        def __init__(self):
            super().__init__(workers=os.cpu_count(), use_multiprocessing=False, max_queue_size=10)
            self.photos = Photos(source)
            self.order = np.random.default_rng(7).permutation(len(self.photos))

        def __len__(self):
            return len(self.photos) // BATCH

        def __getitem__(self, index):
            rows = [self.photos[i] for i in self.order[index * BATCH : index * BATCH + BATCH]]
            return np.stack([image for image, _ in rows]), np.array([label for _, label in rows])

    return Flowers()


def main():
    way, source, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    keras.utils.set_random_seed(7)
    model = keras.Sequential([
        keras.layers.Input((192, 192, 3)), keras.layers.Conv2D(16, 8, strides=8, activation="relu"),
        keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(1000)])
    model.compile("sgd", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    window = StepWindow(seconds)

    class Measure(keras.callbacks.Callback):
        over = False

        def on_train_batch_end(self, batch, logs=None):
            if not self.over and window.step_done():
                self.over = True
                window.show(float(logs["loss"]))
                # Whatever still feeds the model need not be waited for.
                sys.stdout.flush()
                os._exit(0)

    more = {} if way == "PyDataset" else {"steps_per_epoch": 100_000}
    model.fit(batches(way, source), epochs=100_000, verbose=0, callbacks=[Measure()], **more)


if __name__ == "__main__":
    main()
