"""Makes pipeline_chess.npz and pipeline_flowers.npz: what tf.data makes of the pipelines in config/pipelines, without shuffle
and repeat, of the small TFRecord files beside this script.

Run by hand, with TensorFlow and Pillow, from any directory. The input files are made only where they are absent, since other
versions write other bytes:
  chess.tfrecord           `penstock make-sample chess --records 64 --shards 1 --out FOLDER`; must be there
  chess_extremes.tfrecord  by this script: random bits, and scores around every bend of the score's formula
  flowers.tfrecord         by this script, of photographs without copyright that come with scikit-image (--photos: the folder
                           skimage/data of an unpacked wheel)
README.md tells what the results hold.
"""

import argparse
import hashlib
import pathlib

import numpy as np
import tensorflow as tf
from PIL import Image

HERE = pathlib.Path(__file__).parent
A, K, B = 0.9, 400.0, 50.0
CHANNELS = [0, 4, 8, 12, 16, 20, 1, 5, 9, 13, 17, 21, 2, 6, 10, 14, 18, 22, 3, 7, 11, 15, 19, 23]
SIGNS = ([1] * 6 + [-1] * 6) * 2
PHOTOS = [("astronaut.png", 320, 240), ("chelsea.png", 300, 200), ("coffee.png", 240, 160), ("rocket.jpg", 213, 142),
          ("hubble_deep_field.jpg", 160, 120), ("retina.jpg", 141, 141), ("coffee.png", 192, 192), ("chelsea.png", 97, 251)]


def int64(value):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=[value]))


def text(value):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=[value]))


def example(**features):
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString(deterministic=True)


def make_extremes(path):
    random = np.random.default_rng(3)
    scores = [0, 1, -1, 2, -2, 3, 10, -10, 49, -49, 50, -50, 51, -51, 100, -100, 249, -250, 400, -400, 1000, -1000, 3600,
              -3600, 8000, -8000, 32000, -32000, 2**31, -2**31, 2**53, -2**53]
    with tf.io.TFRecordWriter(str(path)) as writer:
        for mate in (0, 1):
            for score in scores:
                bits = random.random(1552) < 0.3
                bits[1546] = mate
                writer.write(example(d=text(np.packbits(bits).tobytes()), s=int64(score)))


def make_flowers(path, folder):
    with tf.io.TFRecordWriter(str(path)) as writer:
        for label, (name, width, height) in enumerate(PHOTOS):
            photo = Image.open(folder / name).convert("RGB").resize((width, height), Image.Resampling.LANCZOS)
            jpeg = path.with_suffix(".jpg")
            photo.save(jpeg, "JPEG", quality=90, subsampling=2)
            features = {"image/encoded": text(jpeg.read_bytes()), "image/class/label": int64(label)}
            jpeg.unlink()
            writer.write(example(**features))


def chess(dtype):
    """(board, flags, score) as tf.data gives them, in batches of 16."""

    def transform(record):
        parsed = tf.io.parse_single_example(record, {"d": tf.io.FixedLenFeature([], tf.string),
                                                     "s": tf.io.FixedLenFeature([], tf.int64)})
        planes = tf.cast(tf.io.decode_raw(parsed["d"], tf.uint8), tf.int32)
        shifts = tf.constant([7, 6, 5, 4, 3, 2, 1, 0])
        bits = tf.reshape(tf.bitwise.bitwise_and(tf.bitwise.right_shift(planes[:, None], shifts), 1), [1552])
        board = tf.gather(tf.reshape(bits[:1536], [8, 8, 24]), CHANNELS, axis=-1) * tf.constant(SIGNS)
        mate = tf.cast(bits[1546], dtype)
        v = tf.cast(parsed["s"], dtype)
        a, k, b = (tf.constant(value, dtype) for value in (A, K, B))
        score = ((1 - mate) * a * tf.tanh(v / k)
                 + mate * tf.sign(v) * (a + (1 - a) / (b - 1) * tf.maximum(tf.constant(0, dtype), b - tf.abs(v))))
        return tf.cast(board, dtype), tf.cast(bits[1536:1546], dtype), score

    files = [str(HERE / "chess.tfrecord"), str(HERE / "chess_extremes.tfrecord")]
    batches = tf.data.TFRecordDataset(files).map(transform).batch(16, drop_remainder=True).as_numpy_iterator()
    return [np.concatenate(part) for part in zip(*batches)]


def flowers():
    """(image, label, pixels): pixels is a list of decoded images."""

    def parse(record):
        parsed = tf.io.parse_single_example(record, {"image/encoded": tf.io.FixedLenFeature([], tf.string),
                                                     "image/class/label": tf.io.FixedLenFeature([], tf.int64)})
        return parsed["image/encoded"], parsed["image/class/label"]

    def transform(encoded, label):
        image = tf.image.resize(tf.io.decode_jpeg(encoded, channels=3), [192, 192])
        return 2 * (image / 255) - 1, label

    records = tf.data.TFRecordDataset(str(HERE / "flowers.tfrecord")).map(parse)
    image, label = next(records.map(transform).batch(40).as_numpy_iterator())
    return image, label, [tf.io.decode_jpeg(encoded, channels=3).numpy() for encoded, _ in records]


def sha256(array):
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--photos", type=pathlib.Path)
    arguments = parser.parse_args()
    if not (HERE / "chess_extremes.tfrecord").exists():
        make_extremes(HERE / "chess_extremes.tfrecord")
    if not (HERE / "flowers.tfrecord").exists():
        make_flowers(HERE / "flowers.tfrecord", arguments.photos)

    results = {}
    for dtype in (tf.float32, tf.float64):
        board, flags, score = chess(dtype)
        assert not np.signbit(board[board == 0]).any()
        results["board"], results["flags"] = board.astype(np.int8), flags.astype(np.int8)
        for name, array in (("board", board), ("flags", flags)):
            results[f"{name}_{dtype.name}_sha256"] = sha256(array)
        results[f"score_{dtype.name}"] = score
    np.savez_compressed(HERE / "pipeline_chess.npz", tensorflow=tf.__version__, **results)

    image, label, pixels = flowers()
    np.savez_compressed(
        HERE / "pipeline_flowers.npz", tensorflow=tf.__version__, label=label,
        image_every_8th=image[:, ::8, ::8], image_last_rows=image[:, -1],
        image_sha256=[sha256(one) for one in image],
        pixels_shape=[one.shape for one in pixels], pixels_sha256=[sha256(one) for one in pixels])


if __name__ == "__main__":
    main()
