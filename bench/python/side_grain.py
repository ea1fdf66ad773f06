"""Grain: a map in worker processes, which put the batches together."""

import grain
from cases import ELEMENTS


def batches(function, batch, workers):
    """Batches as tuples of an array."""
    dataset = grain.MapDataset.range(ELEMENTS).map(function).batch(batch, drop_remainder=True).to_iter_dataset()
    for rows in dataset.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers)):
        yield (rows,)
