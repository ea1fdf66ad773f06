"""What the tests of penstock.torch.DataLoader share: datasets, orders, and what is the same."""

import collections
import random

import numpy as np
import torch
from torch.utils.data import Dataset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

Pair = collections.namedtuple("Pair", ["image", "label"])


def check_same(ours, theirs):
    assert type(ours) is type(theirs)
    if isinstance(theirs, torch.Tensor):
        assert ours.dtype == theirs.dtype and torch.equal(ours, theirs)
    elif isinstance(theirs, dict):
        assert list(ours) == list(theirs)
        check_same(list(ours.values()), list(theirs.values()))
    elif isinstance(theirs, (list, tuple, collections.UserList)):
        assert len(ours) == len(theirs)
        for mine, other in zip(ours, theirs):
            check_same(mine, other)
    else:
        assert ours == theirs


def numbers():
    return TensorDataset(torch.arange(300, dtype=torch.float32).view(100, 3), torch.arange(100) * 7)


class Squares(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, index):
        return index * index


class Drawing(Dataset):
    """Draws of the three global generators."""

    def __len__(self):
        return 24

    def __getitem__(self, index):
        return index, random.random(), np.random.random(), torch.rand(2)


def generator(seed=42):
    return torch.Generator().manual_seed(seed)


ORDERS = {
    "in order": lambda: dict(batch_size=7),
    "last one dropped": lambda: dict(batch_size=7, drop_last=True),
    "shuffled": lambda: dict(batch_size=7, shuffle=True),
    "shuffled by a generator": lambda: dict(batch_size=7, shuffle=True, generator=generator()),
    "not batched": lambda: dict(batch_size=None, shuffle=True),
    "sampler": lambda: dict(batch_size=4, sampler=range(5, 30)),
    "sampler with replacement": lambda: dict(batch_size=4, sampler=torch.utils.data.RandomSampler(range(100), replacement=True, num_samples=130)),
    "weighted": lambda: dict(batch_size=4, sampler=torch.utils.data.WeightedRandomSampler([1.0, 2.0, 3.0] * 33, 50, generator=generator(1))),
    "subset": lambda: dict(batch_size=4, sampler=torch.utils.data.SubsetRandomSampler(range(0, 100, 3))),
    "batch sampler": lambda: dict(batch_sampler=[(0, 1), (2, 3, 4), (99,), (5, 6)]),
    "distributed": lambda: dict(batch_size=4, sampler=DistributedSampler(range(100), 3, 1, seed=5)),
}


class Structures(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, index):
        return {
            "pair": Pair(np.full((2, 3), index, np.float32), str(index)),
            "list": [index, float(index), index % 2 == 0],
            "tuple": (np.int16(index), torch.tensor(index, dtype=torch.bfloat16)),
            "bytes": b"%d" % index,
            "empty": torch.empty(0, 3),
            "half": np.float16(index),
            "large": torch.full((64, 64), index),
        }


class Failing(Dataset):
    def __init__(self, fail):
        self.fail = fail

    def __len__(self):
        return 12

    def __getitem__(self, index):
        if index in (3, 8):
            self.fail(index)
        return index


def outcomes(loader):
    iterator, found = iter(loader), []
    while True:
        try:
            found.append(next(iterator).tolist())
        except StopIteration:
            return found
        except Exception as error:
            found.append(error)
