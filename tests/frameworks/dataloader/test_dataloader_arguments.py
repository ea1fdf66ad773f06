"""Arguments: what is checked, what is warned of, and what has no effect."""

import re

import pytest
import torch
from loader_datasets import ORDERS, Structures, check_same, numbers

from penstock.torch import DataLoader


def test_arguments_are_checked_as_torchs():
    for options in (
        dict(num_workers=-1), dict(timeout=-1), dict(batch_size=None, drop_last=True), dict(multiprocessing_context="spawn"),
        dict(num_workers=1, multiprocessing_context="bad"), dict(sampler=range(3), shuffle=True), dict(batch_sampler=[[1]], batch_size=3),
        dict(prefetch_factor=2), dict(persistent_workers=True),
    ):  # fmt: skip
        with pytest.raises(ValueError) as theirs:
            torch.utils.data.DataLoader(numbers(), **options)
        with pytest.raises(ValueError, match=re.escape(str(theirs.value))):
            DataLoader(numbers(), **options)
    loader = DataLoader(numbers())
    assert isinstance(loader, torch.utils.data.DataLoader)
    for name in ("batch_size", "sampler", "batch_sampler", "drop_last", "dataset"):
        with pytest.raises(ValueError, match="should not be set"):
            setattr(loader, name, 3)


@pytest.mark.parametrize("prefetch_factor", [1, 50])
def test_prefetch_factor_changes_no_batch(prefetch_factor):
    order = ORDERS["shuffled by a generator"]
    theirs = list(torch.utils.data.DataLoader(numbers(), **order()))
    loader = DataLoader(numbers(), **order(), num_workers=2, prefetch_factor=prefetch_factor)
    assert loader.prefetch_factor == prefetch_factor
    check_same(list(loader), theirs)


def test_more_workers_than_processors_are_warned_of():
    with pytest.warns(UserWarning, match="This DataLoader will create 1000 worker processes in total"):
        DataLoader(numbers(), num_workers=1000)


@pytest.mark.parametrize("workers", [0, 2])
def test_pin_memory_is_given_each_tensor_once(workers, monkeypatch):
    """As far as is to be seen without a GPU: what torch's own pinning is called for."""
    pinned = []
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: True)
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *given: torch.device("cuda"))
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor, *device: pinned.append(tensor) or tensor)

    class Own:
        """A batch that pins itself."""

        def __init__(self, samples):
            self.samples = samples
            self.is_pinned = False

        def pin_memory(self):
            self.is_pinned = True
            return self

    batches = list(DataLoader(numbers(), batch_size=50, num_workers=workers, pin_memory=True))
    assert [id(tensor) for tensor in pinned] == [id(tensor) for batch in batches for tensor in batch]
    pinned.clear()
    (batch, _) = DataLoader(Structures(), batch_size=4, num_workers=workers, pin_memory=True, shuffle=True)
    assert len(pinned) == 2 * 9 and all(isinstance(text, bytes) for text in batch["bytes"])
    own = list(DataLoader(numbers(), batch_size=50, num_workers=workers, pin_memory=True, collate_fn=Own))
    assert [batch.is_pinned for batch in own] == [True, True]
    with pytest.warns(UserWarning, match="pin_memory_device is deprecated"):
        assert len(list(DataLoader(numbers(), num_workers=workers, pin_memory=True, pin_memory_device="cuda"))) == 100
    pinned.clear()
    list(DataLoader(numbers(), num_workers=workers, pin_memory_device="cuda"))
    assert not pinned, "a device alone has nothing pinned"


def test_what_has_no_effect_is_said():
    from penstock._loading import _loader

    _loader._told.clear()
    with pytest.warns(UserWarning, match="multiprocessing_context has no effect"):
        loader = DataLoader(numbers(), num_workers=1, multiprocessing_context="spawn", in_order=False)
    assert loader.multiprocessing_context.get_start_method() == "spawn"
    assert len(list(loader)) == 100
