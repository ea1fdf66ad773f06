"""torch's DataLoader, whose workers are forked."""

import torch
from torch_dataset import arrays_of


def batches(function, batch, workers):
    """Batches as tuples of an array."""
    return arrays_of(torch.utils.data.DataLoader, function, batch, workers)
