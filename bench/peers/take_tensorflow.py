"""tf.data at its best: the pipelines of config/pipelines/, vectorised by hand where that helps, autotuned."""

import argparse
import glob
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import tensorflow as tf

import window

A, K, B = 0.9, 400.0, 50.0
BITS = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1)
# The order of the planes, 0, 4, 8 … 1, 5, 9 …, is the transpose of (6, 4), and the signs go by the 4.
SIGN = np.array([1, -1, 1, -1], np.int8)


def records(pattern, shuffle):
    files = tf.data.Dataset.from_tensor_slices(sorted(glob.glob(pattern)))
    return files.interleave(tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=tf.data.AUTOTUNE).shuffle(shuffle, seed=7)


def bits_by_shifts(d):
    shifts = tf.constant([7, 6, 5, 4, 3, 2, 1, 0], tf.uint8)
    return tf.bitwise.bitwise_and(tf.bitwise.right_shift(d[:, :, None], shifts), tf.constant(1, tf.uint8))


def board_by_shifts(d, dtype):
    planes = tf.transpose(tf.reshape(tf.cast(bits_by_shifts(d), tf.int8), [-1, 64, 6, 4]), [0, 1, 3, 2])
    return tf.cast(planes * SIGN[:, None], dtype)


def board_by_table(d, dtype):
    # A byte holds two of the six groups: the table gives the four pairs, signed and cast.
    pairs = np.ascontiguousarray(BITS.astype(np.int8).reshape(256, 2, 4).swapaxes(1, 2) * SIGN[:, None])
    table = tf.constant(pairs.astype(dtype.as_numpy_dtype))
    return tf.transpose(tf.reshape(tf.gather(table, tf.cast(d, tf.int32)), [-1, 3, 4, 2]), [0, 2, 1, 3])


def chess(pattern, dtype, board_of):
    features = {"d": tf.io.FixedLenFeature([], tf.string), "s": tf.io.FixedLenFeature([], tf.int64)}

    def transform(serialized):
        parsed = tf.io.parse_example(serialized, features)
        d = tf.io.decode_raw(parsed["d"], tf.uint8, fixed_length=194)
        board = tf.reshape(board_of(d[:, :192], dtype), [-1, 8, 8, 24])
        rest = tf.reshape(bits_by_shifts(d[:, 192:]), [-1, 16])
        mate = tf.cast(rest[:, 10], dtype)
        v = tf.cast(parsed["s"], dtype)
        a, k, b = (tf.constant(value, dtype) for value in (A, K, B))
        score = (1 - mate) * a * tf.tanh(v / k) + mate * tf.sign(v) * (a + (1 - a) / (b - 1) * tf.maximum(tf.constant(0, dtype), b - tf.abs(v)))
        return board, tf.cast(rest[:, :10], dtype), score

    return records(pattern, 10000).batch(512, drop_remainder=True).map(transform, num_parallel_calls=tf.data.AUTOTUNE)


def flowers(pattern):
    features = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)}

    def transform(serialized):
        parsed = tf.io.parse_single_example(serialized, features)
        image = tf.image.resize(tf.io.decode_jpeg(parsed["image/encoded"], channels=3), [192, 192])
        return 2 * (image / 255) - 1, parsed["image/class/label"]

    return records(pattern, 500).map(transform, num_parallel_calls=tf.data.AUTOTUNE).batch(40)


def imagenet(pattern):
    features = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)}
    mean, std = tf.constant([123.675, 116.28, 103.53]), tf.constant([58.395, 57.12, 57.375])

    def transform(serialized):
        parsed = tf.io.parse_single_example(serialized, features)
        contents = parsed["image/encoded"]
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.io.extract_jpeg_shape(contents), tf.zeros([0, 0, 4], tf.float32), min_object_covered=0.0, aspect_ratio_range=(3 / 4, 4 / 3),
            area_range=(0.08, 1.0), max_attempts=10, use_image_if_no_bounding_boxes=True)
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        part = tf.image.resize(tf.io.decode_and_crop_jpeg(contents, window, channels=3), [224, 224])
        return (tf.image.random_flip_left_right(part) - mean) / std, parsed["image/class/label"]

    return records(pattern, 500).map(transform, num_parallel_calls=tf.data.AUTOTUNE).batch(64)


COLOURS = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128], [128, 0, 128], [0, 128, 128], [128, 128, 128],
                    [64, 0, 0], [192, 0, 0], [64, 128, 0], [192, 128, 0]], np.uint8)


def compared(label):
    """Each colour compared in turn, which is how it is written as a rule."""
    return tf.cast(tf.stack([tf.reduce_all(tf.equal(label, colour), -1) for colour in COLOURS], -1), tf.float32)


def segmentation(pattern, form):
    features = {"image": tf.io.FixedLenFeature([], tf.string), "label": tf.io.FixedLenFeature([], tf.string)}
    # In the table form a colour is one number, and classes are looked up: several times faster.
    table = np.zeros(1 << 24, np.uint8)
    table[COLOURS.astype(np.int32) @ [65536, 256, 1]] = np.arange(12)
    table = tf.constant(table)

    def transform(serialized):
        parsed = tf.io.parse_single_example(serialized, features)
        image = tf.image.resize_with_crop_or_pad(tf.io.decode_png(parsed["image"], channels=3), 512, 512)
        label = tf.image.resize_with_crop_or_pad(tf.io.decode_png(parsed["label"], channels=3), 512, 512)
        if form == "compare":
            label = compared(label)
        else:
            key = tf.reduce_sum(tf.cast(label, tf.int32) * tf.constant([65536, 256, 1]), -1)
            label = tf.one_hot(tf.gather(table, key), 12)
        return tf.image.convert_image_dtype(image, tf.float32), label

    return records(pattern, 100).map(transform, num_parallel_calls=tf.data.AUTOTUNE).batch(3)


def segmentation_as_written(pattern, in_turn):
    """From the two folders that the shards were made of, in the steps that come to mind first. A `map` without num_parallel_calls is made
    parallel by TensorFlow's own optimisation since some version; `in_turn`: it is not, as in those before and wherever the function has a
    state."""
    folder = os.path.dirname(pattern)
    images, labels = (sorted(glob.glob(os.path.join(folder, name, "*.png"))) for name in ("images", "labels"))

    def load(image, label):
        image = tf.image.convert_image_dtype(tf.io.decode_png(tf.io.read_file(image), channels=3), tf.float32)
        label = tf.io.decode_png(tf.io.read_file(label), channels=3)
        image = tf.image.resize_with_crop_or_pad(image, 512, 512)
        return image, compared(tf.image.resize_with_crop_or_pad(label, 512, 512))

    options = tf.data.Options()
    options.experimental_optimization.map_parallelization = not in_turn
    return tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(100, seed=7).map(load).batch(3).with_options(options)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=["chess", "segmentation", *IMAGES], required=True)
    parser.add_argument("--files", required=True)
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--form", choices=["shifts", "table", "compare", "written", "written_in_turn"], default="table",
                        help="how bits or classes are found; written: from folders, as such a pipeline is written as a rule")
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--read", action="store_true")
    arguments = parser.parse_args()

    if arguments.case == "chess":
        board_of = board_by_shifts if arguments.form == "shifts" else board_by_table
        dataset = chess(arguments.files, tf.as_dtype(arguments.dtype), board_of)
    elif arguments.case == "segmentation" and arguments.form.startswith("written"):
        dataset = segmentation_as_written(arguments.files, arguments.form == "written_in_turn")
    elif arguments.case == "segmentation":
        dataset = segmentation(arguments.files, arguments.form)
    else:
        dataset = IMAGES[arguments.case](arguments.files)
    dataset = dataset.repeat().prefetch(tf.data.AUTOTUNE)
    window.measure(dataset.as_numpy_iterator(), window.sum_bytes if arguments.read else window.touch_ends, arguments.seconds)


IMAGES = {"flowers": flowers, "imagenet": imagenet}


if __name__ == "__main__":
    main()
