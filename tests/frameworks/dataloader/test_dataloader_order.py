"""Which elements come when: orders, samplers, ranks, and the length of an epoch."""

import functools
import itertools
import json
import os
import subprocess
import sys
import textwrap

import pytest
import torch
from loader_datasets import ORDERS, Squares, check_same, numbers
from torch.utils.data import Dataset
from torch.utils.data.distributed import DistributedSampler

from penstock.torch import DataLoader


@pytest.mark.parametrize("order", ORDERS)
def test_order_is_torchs(order):
    def epochs(kind, **options):
        torch.manual_seed(3)
        loader = kind(numbers(), **ORDERS[order](), **options)
        return [len(loader), list(loader), list(loader), torch.rand(1).item()]

    theirs = epochs(torch.utils.data.DataLoader)
    check_same(epochs(DataLoader, num_workers=2), theirs)
    check_same(epochs(DataLoader, num_workers=0), theirs)


def test_persistent_workers_draw_as_torchs():
    def epochs(kind):
        torch.manual_seed(3)
        loader = kind(numbers(), batch_size=10, shuffle=True, num_workers=1, persistent_workers=True)
        return [list(loader), list(loader), torch.rand(1).item()]

    check_same(epochs(DataLoader), epochs(functools.partial(torch.utils.data.DataLoader, multiprocessing_context="fork")))


def test_a_sampler_without_end():
    class Endless:
        def __iter__(self):
            return iter(itertools.cycle(range(100)))

    loader = DataLoader(numbers(), sampler=Endless(), batch_size=1, num_workers=2)
    taken = [label.item() for _, label in itertools.islice(loader, 700)]
    assert taken == [index % 100 * 7 for index in range(700)]


def test_a_loop_that_is_left_and_begun_again():
    loader = DataLoader(numbers(), batch_size=5, num_workers=2, persistent_workers=True)
    for batch in itertools.islice(loader, 3):
        pass
    check_same(list(loader), list(torch.utils.data.DataLoader(numbers(), batch_size=5)))


def test_two_loaders_at_once():
    first, second = iter(DataLoader(numbers(), num_workers=1)), iter(DataLoader(Squares(), num_workers=1))
    for index in range(5):
        assert next(first)[1].item() == index * 7 and next(second).item() == index * index


def test_ranks_divide_an_epoch():
    loaders = [DataLoader(numbers(), batch_size=5, shuffle=True, num_workers=rank, rank=rank, world_size=2) for rank in range(2)]
    orders = []
    for epoch in range(2):
        parts = [[label for _, labels in loader for label in labels.tolist()] for loader in loaders]
        assert sorted(parts[0] + parts[1]) == [7 * index for index in range(100)]
        for rank, part in enumerate(parts):
            sampler = DistributedSampler(range(100), 2, rank)
            sampler.set_epoch(epoch)
            assert part == [7 * index for index in sampler]
        orders.append(parts)
    loaders[0].set_epoch(0)
    assert [label for _, labels in loaders[0] for label in labels.tolist()] == orders[0][0] != orders[1][0]
    with pytest.raises(ValueError, match="rank and world_size"):
        DataLoader(numbers(), rank=0)
    with pytest.raises(ValueError, match="without sampler"):
        DataLoader(numbers(), rank=0, world_size=2, sampler=range(3))


def test_drop_last_of_ranks():
    """All ranks have as many, of equal sizes; without drop_last some rows come twice."""
    for drop_last in (True, False):
        parts = []
        for rank in range(3):
            ours = DataLoader(numbers(), batch_size=4, num_workers=1, rank=rank, world_size=3, drop_last=drop_last)
            sampler = DistributedSampler(range(100), 3, rank, shuffle=False, drop_last=drop_last)
            check_same(list(ours), list(torch.utils.data.DataLoader(numbers(), batch_size=4, sampler=sampler, drop_last=drop_last)))
            parts.append(sum(len(labels) for _, labels in ours))
        assert parts == ([32] * 3 if drop_last else [34] * 3)


def test_a_dataset_that_grows():
    class Growing(Dataset):
        def __init__(self):
            self.length = 100

        def __len__(self):
            return self.length

        def __getitem__(self, index):
            return index

    dataset = Growing()
    loader, shuffled = (DataLoader(dataset, num_workers=1, batch_size=10, shuffle=shuffle) for shuffle in (False, True))
    dataset.length = 220
    assert len(loader) == len(shuffled) == 22
    assert torch.cat(list(loader)).tolist() == list(range(220)) == sorted(torch.cat(list(shuffled)).tolist())


def test_ranks_share_a_daemon(tmp_path):
    script = textwrap.dedent(
        """
        import os, sys, torch
        from penstock.torch import DataLoader
        rank = int(sys.argv[1])
        loader = DataLoader(range(40), batch_size=4, shuffle=True, num_workers=1, rank=rank, world_size=2, share=sys.argv[2])
        print([value for batch in loader for value in batch.tolist()])
        """
    )
    name = f"loader-{os.getpid()}"
    ranks = [subprocess.Popen([sys.executable, "-c", script, str(rank), name], stdout=subprocess.PIPE, text=True) for rank in range(2)]
    found = [json.loads(rank.communicate(timeout=120)[0]) for rank in ranks]
    assert sorted(found[0] + found[1]) == list(range(40)) and all(len(part) == 20 for part in found)
