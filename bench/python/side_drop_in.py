"""Penstock in the place of torch's DataLoader."""

import penstock
import penstock.torch
from torch_dataset import Elements, arrays_of


def batches(function, batch, workers):
    """Batches as tuples of an array."""
    return arrays_of(penstock.torch.DataLoader, function, batch, workers)


def _loader(function, batch, workers):
    return penstock.torch.DataLoader(Elements(function), batch_size=batch, num_workers=workers, drop_last=True)


def state_behind(steps, function, batch, workers):
    loader = _loader(function, batch, workers)
    rows = iter(loader)
    for _ in range(steps):
        next(rows)
    state = loader.state_dict()
    del rows, loader
    penstock.stop_private_daemon()
    return state


def batches_from(state, function, batch, workers):
    loader = _loader(function, batch, workers)
    loader.load_state_dict(state)
    for rows in loader:
        yield (rows.numpy(),)
