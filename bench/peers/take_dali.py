"""DALI on the processor: the pipelines of images of config/pipelines/, as its users write them, with a thread for each processor."""

import argparse
import glob
import os
import tempfile

import numpy as np
import nvidia.dali.fn as fn
import nvidia.dali.tfrecord as tfrecord
import nvidia.dali.types as types
from nvidia.dali import pipeline_def

import window

THREADS = len(os.sched_getaffinity(0))
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
COLOURS = np.array([[0, 0, 0], [128, 0, 0], [0, 128, 0], [128, 128, 0], [0, 0, 128], [128, 0, 128], [0, 128, 128], [128, 128, 128],
                    [64, 0, 0], [192, 0, 0], [64, 128, 0], [192, 128, 0]], np.int32)


def write_index(path, out):
    """Where a shard's records lie: begin and length of each, as DALI's reader wants it, a line a record."""
    with open(path, "rb") as shard, open(out, "w") as index:
        begin = 0
        while header := shard.read(12):
            length = 16 + int.from_bytes(header[:8], "little")
            index.write(f"{begin} {length}\n")
            begin += length
            shard.seek(begin)


def records(pattern, features, shuffle, folder):
    paths = sorted(glob.glob(pattern))
    indices = [f"{folder}/{i}" for i in range(len(paths))]
    for path, index in zip(paths, indices):
        write_index(path, index)
    return fn.readers.tfrecord(path=paths, index_path=indices, features=features, random_shuffle=True, initial_fill=shuffle, seed=7,
                               prefetch_queue_depth=2)


BYTES = tfrecord.FixedLenFeature((), tfrecord.string, "")
NUMBER = tfrecord.FixedLenFeature([1], tfrecord.int64, -1)


@pipeline_def(batch_size=40, num_threads=THREADS, device_id=None)
def flowers(pattern, folder):
    read = records(pattern, {"image/encoded": BYTES, "image/class/label": NUMBER}, 500, folder)
    image = fn.decoders.image(read["image/encoded"], device="cpu", output_type=types.RGB)
    image = fn.resize(image, size=[192, 192], interp_type=types.INTERP_LINEAR, antialias=False)
    return fn.normalize(image, mean=127.5, stddev=127.5, dtype=types.FLOAT), read["image/class/label"]


@pipeline_def(batch_size=64, num_threads=THREADS, device_id=None)
def imagenet(pattern, folder):
    read = records(pattern, {"image/encoded": BYTES, "image/class/label": NUMBER}, 500, folder)
    image = fn.decoders.image_random_crop(read["image/encoded"], device="cpu", output_type=types.RGB, random_area=[0.08, 1.0],
                                          random_aspect_ratio=[3 / 4, 4 / 3])
    image = fn.resize(image, size=[224, 224], interp_type=types.INTERP_LINEAR, antialias=False)
    image = fn.crop_mirror_normalize(image, dtype=types.FLOAT, output_layout="HWC", mean=MEAN, std=STD, mirror=fn.random.coin_flip())
    return image, read["image/class/label"]


@pipeline_def(batch_size=3, num_threads=THREADS, device_id=None)
def segmentation(pattern, folder):
    read = records(pattern, {"image": BYTES, "label": BYTES}, 100, folder)

    def cut(contents):
        image = fn.decoders.image(contents, device="cpu", output_type=types.RGB)
        return fn.crop(image, crop=[512, 512], out_of_bounds_policy="pad", fill_values=0)

    # Keys of its table are of 16 bits; two bits of each channel tell these colours apart.
    label = fn.cast(cut(read["label"]), dtype=types.INT32) // 64
    key = label[:, :, 0] * 16 + label[:, :, 1] * 4 + label[:, :, 2]
    keys = (COLOURS // 64 @ [16, 4, 1]).tolist()
    classes = fn.lookup_table(key, keys=keys, values=[float(i) for i in range(len(keys))], dtype=types.INT32, default_value=0)
    return fn.cast(cut(read["image"]), dtype=types.FLOAT) / 255, fn.one_hot(classes, num_classes=len(keys), dtype=types.FLOAT)


CASES = {"flowers": flowers, "imagenet": imagenet, "segmentation": segmentation}


def batches(pipeline):
    while True:
        yield [output.as_array() for output in pipeline.run()]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--case", choices=CASES, required=True)
    parser.add_argument("--files", required=True)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pipeline = CASES[arguments.case](arguments.files, folder)
        pipeline.build()
        window.measure(batches(pipeline), window.touch_ends, arguments.seconds)


if __name__ == "__main__":
    main()
