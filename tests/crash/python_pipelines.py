"""The pipelines of the Python crash loop. Their functions travel to worker processes by this module's name.

Each row waits for about `pause` seconds, so that kills meet rows at work; an undisturbed run waits for nothing, and has the same bytes.
"""

import random
import time

import numpy as np

import penstock

INT = penstock.TensorSpec((), np.int64)
ROW = penstock.TensorSpec((4,), np.float64)


class Draws:
    """Draws of all generators that are seeded for an element."""

    def __init__(self, pause):
        self.pause = pause

    def __call__(self, x):
        time.sleep(self.pause)
        return np.array([x, penstock.rng().random(), np.random.random(), random.random()])


class DrawsOfBatch:
    """The same behind batch: an element is a batch, and strings are among what it gives."""

    def __init__(self, pause):
        self.pause = pause

    def __call__(self, x):
        time.sleep(8 * self.pause)
        return {"x": x + np.random.randint(1000, size=len(x)), "text": f"{len(x)} rows from {x[0]}, {random.random()}"}


class Records:
    """Something that has a length and can be indexed."""

    def __init__(self, pause):
        self.pause = pause
        self.numbers = np.arange(50_000).reshape(500, 100)  # lies in memory once for all workers

    def __len__(self):
        return len(self.numbers)

    def __getitem__(self, i):
        time.sleep(self.pause)
        return {"i": int(i), "numbers": self.numbers[i] + int(penstock.rng().integers(1000)), "drawn": np.random.random()}


class Counter:
    """An iterable whose iterator has states."""

    def __init__(self, pause):
        self.pause = pause

    def __iter__(self):
        return CounterIterator(self.pause)


class CounterIterator:
    def __init__(self, pause):
        self.pause, self.at, self.sum = pause, 0, 0

    def state_dict(self):
        return {"at": self.at, "sum": self.sum}

    def load_state_dict(self, state):
        self.at, self.sum = state["at"], state["sum"]

    def __next__(self):
        if self.at == 1500:
            raise StopIteration
        time.sleep(self.pause)
        self.at += 1
        self.sum += self.at
        return np.array([self.at, self.sum, np.random.random(), random.random()])


def again(pause):
    """A generator that tells no position, and is gone through again."""
    total = 0.0
    for i in range(200):
        time.sleep(pause)
        total += random.random()
        yield np.array([i, total, np.random.random(), penstock.rng().random()])


def positioned(pause, position=None):
    for i in range(int(position or b"0"), 1500):
        time.sleep(pause)
        yield penstock.At(np.array([i, random.random(), np.random.random(), 0]), b"%d" % (i + 1))


def is_kept(x):
    return np.random.random() < 0.7


def mapped(pause, workers):
    rows = penstock.Dataset.range(1000).shuffle(100, seed=3).repeat()
    return rows.map(Draws(pause), python=True, output=ROW, seed=5, workers=workers).batch(16)


def batches(pause, workers):
    rows = penstock.Dataset.range(1000).shuffle(100, seed=3).repeat().filter(is_kept, python=True, seed=7, workers=workers).batch(8)
    output = {"x": penstock.TensorSpec((None,), np.int64), "text": penstock.TensorSpec((), penstock.string)}
    return rows.map(DrawsOfBatch(pause), python=True, output=output, seed=5, workers=workers)


def source(pause, workers):
    output = {"i": INT, "numbers": penstock.TensorSpec((100,), np.int64), "drawn": penstock.TensorSpec((), np.float64)}
    return penstock.Dataset.from_python(Records(pause), output, seed=5, workers=workers).shuffle(64, seed=3).repeat().batch(12)


def of_generator(generator, *args):
    return penstock.Dataset.from_generator(generator, output_signature=ROW, args=args or None, seed=5).repeat().batch(16)


PIPELINES = {
    "mapped": mapped,
    "batches": batches,
    "source": source,
    "states": lambda pause, workers: of_generator(Counter(pause)),
    "again": lambda pause, workers: of_generator(again, pause),
    "positions": lambda pause, workers: of_generator(positioned, pause),
}


def make(name, pause, workers):
    """A new dataset, without end: its first pass draws the same in each process."""
    options = penstock.Options()
    # What is ahead of a trainer is little.
    options.ring.slots = 4
    return PIPELINES[name](pause, workers).with_options(options)
