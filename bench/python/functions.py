"""The functions of the cases, each of an element's number. Workers import this module, so that it asks for NumPy alone."""

import functools
import io
import os
import statistics
import time

import numpy as np

IMAGE_SHAPE = (224, 224, 3)  # of uint8: 150 KB
PHOTO_SIZE = (640, 480)  # of which decode and resize take some 2.5 ms
# Of work(): those that take 100 µs, and those that short_image() has beside its image. sides.py measures them before a run, as processors differ and change.
STEPS_OF_100_US, SHORT_IMAGE_STEPS = (int(number) for number in os.environ.get("PENSTOCK_BENCH_STEPS", "1400,1200").split(","))


def work(number, steps):
    """Pure Python that holds the GIL."""
    value = number
    for _ in range(steps):
        value = (value * 1_103_515_245 + 12_345) & 0x7FFFFFFF
    return value


def measured_steps():
    """Both numbers of steps, on this machine as it is now."""

    def microseconds(function, *arguments):
        function(*arguments)
        times = []
        for _ in range(301):
            begin = time.perf_counter()
            function(*arguments)
            times.append(time.perf_counter() - begin)
        return 1e6 * statistics.median(times)

    step = microseconds(work, 1, 1_000) / 1_000
    return round(100 / step), max(round((100 - microseconds(image, 1)) / step), 1)


def small(number):
    return np.arange(number, number + 16, dtype=np.int64)


def image(number):
    return np.full(IMAGE_SHAPE, number & 255, np.uint8)


def pure(number):
    return np.int64(work(int(number), 2 * STEPS_OF_100_US))


def tail(number):
    """100 µs of pure Python; one element of 100, at no regular distance, takes 100 times as long."""
    number = int(number)
    slow = (number * 2_654_435_761 >> 12) % 100 == 0
    return np.int64(work(number, STEPS_OF_100_US * (100 if slow else 1)))


def short_image(number):
    """An image of 150 KB that takes 100 µs, all in all."""
    work(int(number), SHORT_IMAGE_STEPS)
    return image(number)


@functools.lru_cache(None)
def _photo():
    """A JPEG file: waves, and noise as a camera's."""
    import PIL.Image

    width, height = PHOTO_SIZE
    y, x, _ = np.mgrid[:height, :width, :1]
    waves = 127 + 90 * np.sin(x / (11, 17, 29)) * np.cos(y / (23, 13, 19))
    noise = np.random.Generator(np.random.PCG64(7)).normal(0, 8, waves.shape)
    file = io.BytesIO()
    PIL.Image.fromarray(np.clip(waves + noise, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=90)
    return file.getvalue()


def pillow(number):
    """Decodes a JPEG file and resizes it."""
    import PIL.Image

    del number  # each element is the same photograph
    photo = PIL.Image.open(io.BytesIO(_photo())).convert("RGB")
    return np.asarray(photo.resize(IMAGE_SHAPE[:2], PIL.Image.Resampling.BILINEAR))


def draws(number):
    """Draws from the global generators of random, NumPy and torch."""
    import random

    import torch

    return np.float64(number + random.random() + np.random.random() + float(torch.rand(())))


class Table:
    """A function that holds an array, and has read every page of it before its first row."""

    def __init__(self, array):
        self.array = array
        self.has_read = False

    def __call__(self, number):
        if not self.has_read:
            self.array[::512].sum()
            self.has_read = True
        return self.array[int(number) % 1024 * 16 :][:16]
