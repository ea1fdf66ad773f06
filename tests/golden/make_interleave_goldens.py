"""Writes interleave_orders.inc: the orders of tf.data's interleave over the shards of tests/ops/order_test.cc.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_interleave_goldens.py
"""

import pathlib

import tensorflow as tf

SHARDS = [range(0, 5), range(0), range(100, 101), range(200, 207), range(300, 303)]
CASES = [(1, 1), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (4, 1), (5, 1), (5, 2), (8, 1), (16, 4)]


def order(cycle_length, block_length):
    """The interleaved numbers, as a list of int."""
    numbers = tf.ragged.constant([list(shard) for shard in SHARDS], dtype=tf.int64)
    dataset = tf.data.Dataset.range(len(SHARDS)).interleave(
        lambda shard: tf.data.Dataset.from_tensor_slices(numbers[shard]),
        cycle_length=cycle_length,
        block_length=block_length,
        num_parallel_calls=None,
    )
    return [int(number) for number in dataset.as_numpy_iterator()]


def main():
    lines = ["// Written by make_interleave_goldens.py with TensorFlow %s.\n" % tf.__version__]
    for cycle_length, block_length in CASES:
        numbers = ", ".join(map(str, order(cycle_length, block_length)))
        lines.append("{%d, %d, {%s}},\n" % (cycle_length, block_length, numbers))
    pathlib.Path(__file__).with_name("interleave_orders.inc").write_text("".join(lines))


if __name__ == "__main__":
    main()
