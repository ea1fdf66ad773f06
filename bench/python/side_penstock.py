"""Penstock: a Python function behind a range of numbers."""

import penstock
from cases import ELEMENTS


def batches(function, batch, workers, **options):
    """Batches as tuples of an array. `options` are map's."""
    dataset = penstock.Dataset.range(ELEMENTS).map(function, python=True, workers=workers, **options)
    for rows in dataset.batch(batch, drop_remainder=True):
        yield (rows,)
