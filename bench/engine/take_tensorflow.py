"""tf.data reading the same chess records: raw, or parsed a batch at a time, which is the fastest way it has."""

import argparse
import glob
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")
sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "peers"))

import tensorflow as tf

import window

BATCH = 512
FILES_AT_ONCE = 8
FEATURES = {"d": tf.io.FixedLenFeature([], tf.string), "s": tf.io.FixedLenFeature([], tf.int64)}


def parse(serialized):
    parsed = tf.io.parse_example(serialized, FEATURES)
    return tf.io.decode_raw(parsed["d"], tf.uint8, fixed_length=194), parsed["s"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--files", required=True)
    parser.add_argument("--form", choices=["raw", "parsed"], required=True)
    parser.add_argument("--shuffle", type=int, default=0, help="the buffer; 0: in order")
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()

    files = tf.data.Dataset.from_tensor_slices(sorted(glob.glob(arguments.files)))
    dataset = files.interleave(tf.data.TFRecordDataset, cycle_length=FILES_AT_ONCE, num_parallel_calls=tf.data.AUTOTUNE)
    if arguments.shuffle:
        dataset = dataset.shuffle(arguments.shuffle, seed=7)
    dataset = dataset.batch(BATCH, drop_remainder=True)
    if arguments.form == "parsed":
        dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE)
    dataset = dataset.repeat().prefetch(tf.data.AUTOTUNE)
    if arguments.form == "parsed":
        window.measure(dataset.as_numpy_iterator(), window.touch_ends, arguments.seconds)
    else:
        # As NumPy arrays, strings would be made Python's own one by one: that is left out, and nothing is touched.
        window.measure(((batch,) for batch in dataset), lambda arrays: None, arguments.seconds)


if __name__ == "__main__":
    main()
