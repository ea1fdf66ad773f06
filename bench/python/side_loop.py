"""The plain loop: the function's results in batches, in one process; the least that anything can cost."""

import itertools

import numpy as np


def batches(function, batch, worker, workers):
    """Batches as tuples of an array; of several loops each makes its share of the elements."""
    numbers = itertools.count(worker, workers)
    first = np.asarray(function(next(numbers)))
    while True:
        rows = np.empty((batch, *first.shape), first.dtype)
        for row in range(batch):
            rows[row] = function(next(numbers))
        yield (rows,)
