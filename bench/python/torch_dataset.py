"""The elements as a torch Dataset, which both DataLoaders take."""

import torch
from cases import ELEMENTS


class Elements(torch.utils.data.Dataset):
    def __init__(self, function):
        self.function = function

    def __len__(self):
        return ELEMENTS

    def __getitem__(self, number):
        return self.function(number)


def arrays_of(loader_class, function, batch, workers):
    """Batches as tuples of an array, from a loader of torch's arguments."""
    for rows in loader_class(Elements(function), batch_size=batch, num_workers=workers, drop_last=True):
        yield (rows.numpy(),)
