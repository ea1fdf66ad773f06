"""Grain: a map in worker processes, which put the batches together."""

import sys

import grain
from absl import flags
from cases import ELEMENTS

# Grain's worker processes ask for flags that a program without absl's app.run() has not parsed.
flags.FLAGS(sys.argv[:1])


def _iterator(function, batch, workers):
    dataset = grain.MapDataset.range(ELEMENTS).map(function).batch(batch, drop_remainder=True).to_iter_dataset()
    return iter(dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)))


def batches(function, batch, workers):
    """Batches as tuples of an array."""
    for rows in _iterator(function, batch, workers):
        yield (rows,)


def state_behind(steps, function, batch, workers):
    rows = _iterator(function, batch, workers)
    for _ in range(steps):
        next(rows)
    return rows.get_state()


def batches_from(state, function, batch, workers):
    iterator = _iterator(function, batch, workers)
    iterator.set_state(state)
    for rows in iterator:
        yield (rows,)
