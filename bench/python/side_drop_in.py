"""Penstock in the place of torch's DataLoader."""

import penstock.torch
from torch_dataset import arrays_of


def batches(function, batch, workers):
    """Batches as tuples of an array."""
    return arrays_of(penstock.torch.DataLoader, function, batch, workers)
