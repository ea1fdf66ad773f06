"""What all trainers train on: rows that are drawn as they are fetched, and a log of the batches that their models have seen."""

import hashlib
import os
import pathlib
import random

import numpy as np
import torch

ROWS = 40
BATCH = 4
STEPS_OF_EPOCH = ROWS // BATCH
# Steps from one checkpoint to the next.
SAVED_EVERY = 3


class Rows(torch.utils.data.Dataset):
    """{"x": 8 numbers, "labels": 0 or 1}: of the three global generators, so that two fetches of one row are the same only where its draws are."""

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        drawn = [random.random(), np.random.random(), torch.rand(()).item()]
        return {"x": np.array([index, *drawn, 0, 0, 0, 1], np.float32), "labels": np.int64(index % 2)}


class Pairs(Rows):
    """The same as (x, label)."""

    def __getitem__(self, index):
        row = super().__getitem__(index)
        return row["x"], np.float32(row["labels"])


class Model(torch.nn.Module):
    """One layer, with a log of what it has seen."""

    def __init__(self, log):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.log = log

    def forward(self, x, labels):
        if self.training:
            self.log.add(x, labels)
        loss = torch.nn.functional.binary_cross_entropy_with_logits(self.layer(x)[:, 0], labels.float())
        return {"loss": loss}


class Log:
    """The file "log" in a folder: for each step a line with its number and the digest of its batch.

    Attributes:
      step: the one that comes next, from 0 on; a trainer that goes on sets it.
    """

    def __init__(self, folder):
        self._file = open(pathlib.Path(folder) / "log", "a")
        self.step = 0

    def add(self, *tensors):
        digest = hashlib.sha256(b"".join(np.ascontiguousarray(tensor.detach().numpy()).tobytes() for tensor in tensors)).hexdigest()[:16]
        self._file.write(f"{self.step} {digest}\n")
        self._file.flush()
        self.step += 1


def newest(folder, is_whole):
    """The checkpoint with the highest number in its name of those that are whole; None where there is none."""
    found = sorted(pathlib.Path(folder).glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1].split(".")[0]), reverse=True)
    return next((path for path in found if is_whole(path)), None)


def renamed_when_whole(folder, step, write):
    """A checkpoint that is whole as soon as it is there: write(path), then its name."""
    new = pathlib.Path(folder) / f"new-{step}"
    if new.exists():
        os.rename(new, f"{new}-{os.urandom(4).hex()}")
    write(new)
    os.rename(new, pathlib.Path(folder) / f"checkpoint-{step}")
