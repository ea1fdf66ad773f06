"""One side of one case: takes batches for a while and prints a line of JSON, as bench/peers/window.py does.

    python take.py --side penstock|tensorflow --case NAME --folder FOLDER [--tuned] [--seconds S] [--cases-of FOLDER]

The cases are those of the cases.py beside this file, or of another folder.
"""

import argparse
import importlib
import os
import pathlib
import sys
import time
import types

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))
import window


def arrays_of(element):
    """The arrays of a batch, dense ones first."""
    if isinstance(element, dict):
        element = tuple(element.values())
    if not isinstance(element, tuple):
        return [element]
    dense, others = [], []
    for part in element:
        values = getattr(part, "values", part)
        (dense if values is part else others).append(values if hasattr(values, "item") else part)
    return dense + others


def penstock_names():
    import numpy as np

    import penstock

    names = {name: getattr(penstock, name) for name in penstock.__all__}
    return types.SimpleNamespace(**{**names, "uint8": np.uint8}, np=np, is_tensorflow=False), iter


def tensorflow_names():
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
    import tensorflow as tf
    import tensorflow.experimental.numpy as tnp

    tnp.experimental_enable_numpy_behavior()
    names = types.SimpleNamespace(
        Dataset=tf.data.Dataset, TFRecordDataset=tf.data.TFRecordDataset, io=tf.io, image=tf.image, np=tnp, AUTOTUNE=tf.data.AUTOTUNE,
        int64=tf.int64, float32=tf.float32, string=tf.string, uint8=tf.uint8, is_tensorflow=True,
    )  # fmt: skip

    def batches(dataset):
        for element in dataset:
            parts = element.values() if isinstance(element, dict) else element if isinstance(element, tuple) else (element,)
            # Dense ones first, since rows are counted by the first.
            yield tuple(array for _, array in sorted(map(as_array, parts), key=lambda pair: pair[0]))

    def as_array(part):
        if isinstance(part, tf.RaggedTensor):
            return 1, part.flat_values.numpy()
        return (1, part.values.numpy()) if isinstance(part, tf.SparseTensor) else (0, part.numpy())

    return names, batches


def with_trainer(batches, seconds):
    """A trainer that is busy with each batch for a while."""
    for batch in batches:
        yield batch
        time.sleep(seconds)


def touch(arrays):
    for array in arrays:
        if array.size and array.dtype != object:
            array.item(0)
            array.item(array.size - 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--side", choices=["penstock", "tensorflow"], required=True)
    parser.add_argument("--cases-of", default=os.path.dirname(os.path.abspath(__file__)))
    parser.add_argument("--case", required=True)
    parser.add_argument("--folder", required=True)
    parser.add_argument("--tuned", action="store_true")
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    sys.path.insert(0, arguments.cases_of)
    cases = importlib.import_module("cases")

    names, iterate = penstock_names() if arguments.side == "penstock" else tensorflow_names()
    batches = iterate(cases.CASES[arguments.case](names, arguments.tuned, arguments.folder))
    batches = (arrays_of(element) for element in batches)
    step = cases.STEP_SECONDS.get(arguments.case)
    if step:
        batches = with_trainer(batches, step)
    cpu = window.own_cpu_seconds
    if arguments.side == "penstock":
        from penstock._running import _daemon

        def cpu():
            return window.own_cpu_seconds() + window.process_cpu_seconds(_daemon.private_process())

    window.measure(batches, touch, arguments.seconds, cpu)


if __name__ == "__main__":
    main()
