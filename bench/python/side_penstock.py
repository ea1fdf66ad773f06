"""Penstock: a Python function behind a range of numbers."""

import penstock
from cases import ELEMENTS


def _dataset(function, batch, workers, **options):
    """`options` are map's."""
    return penstock.Dataset.range(ELEMENTS).map(function, python=True, workers=workers, **options).batch(batch, drop_remainder=True)


def batches(function, batch, workers, **options):
    """Batches as tuples of an array."""
    for rows in _dataset(function, batch, workers, **options):
        yield (rows,)


def state_behind(steps, function, batch, workers):
    with iter(_dataset(function, batch, workers)) as rows:
        for _ in range(steps):
            next(rows)
        state = rows.state_dict()
    penstock.stop_private_daemon()
    return state


def batches_from(state, function, batch, workers):
    iterator = iter(_dataset(function, batch, workers))
    iterator.load_state_dict(state)
    for rows in iterator:
        yield (rows,)
