"""Errors, deaths, and limits of time."""

import os
import signal
import threading

import pytest
import torch
from loader_datasets import Failing, numbers, outcomes
from torch.utils.data import Dataset, IterableDataset

from penstock.torch import DataLoader


def test_an_error_is_raised_and_the_loop_goes_on():
    def fail(index):
        raise KeyError(f"no {index}")

    ours = outcomes(DataLoader(Failing(fail), batch_size=2, num_workers=2))
    assert [type(found) for found in ours] == [list, KeyError, list, list, KeyError, list]
    assert "Caught KeyError in DataLoader worker process 1" in str(ours[1]) and "no 3" in str(ours[1]) and "in fail" in str(ours[1])
    inline = outcomes(DataLoader(Failing(fail), batch_size=2))
    assert [type(found) for found in inline] == [type(found) for found in ours]


def test_a_batch_that_kills_its_worker():
    ours = outcomes(DataLoader(Failing(lambda index: os.kill(os.getpid(), signal.SIGSEGV)), batch_size=2, num_workers=2))
    assert [type(found) for found in ours] == [list, RuntimeError, list, list, RuntimeError, list]
    assert "SIGSEGV" in str(ours[1])


def test_a_worker_that_is_killed_costs_nothing(tmp_path):
    class Process(Dataset):
        def __len__(self):
            return 60

        def __getitem__(self, index):
            if index == 20 and not (tmp_path / "killed").exists():
                (tmp_path / "killed").touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return index

    assert torch.cat(list(DataLoader(Process(), batch_size=4, num_workers=2))).tolist() == list(range(60))
    assert (tmp_path / "killed").exists()


class KilledOnce(IterableDataset):
    """Twenty numbers; its process is killed at one of them, once."""

    def __init__(self, file):
        self.file = file

    def __iter__(self):
        for number in range(20):
            if number == 7 and not self.file.exists():
                self.file.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield number


@pytest.mark.parametrize("workers", [1, 2])
def test_a_worker_of_an_iterable_that_is_killed_costs_nothing(workers, tmp_path):
    found = [batch.tolist() for batch in DataLoader(KilledOnce(tmp_path / "killed"), batch_size=4, num_workers=workers)]
    assert (tmp_path / "killed").exists()
    assert found == [list(range(begin, begin + 4)) for begin in range(0, 20, 4) for _ in range(workers)]


def test_timeout_of_an_iterable():
    class Stalls(IterableDataset):
        def __iter__(self):
            yield from range(4)
            threading.Event().wait()

    loader = iter(DataLoader(Stalls(), batch_size=2, num_workers=1, timeout=1))
    assert [next(loader).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(RuntimeError, match="DataLoader timed out after 1 seconds"):
        next(loader)


def test_timeout():
    class Slow(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            if index == 1:
                threading.Event().wait()
            return index

    ours = outcomes(DataLoader(Slow(), num_workers=1, timeout=1))
    assert [type(found) for found in ours] == [list, RuntimeError, list, list]
    assert "DataLoader timed out after 1 seconds" in str(ours[1])


def test_errors_at_the_beginning():
    class NoIterator(IterableDataset):
        def __iter__(self):
            raise RuntimeError("Error in __iter__")

    def init(worker):
        raise RuntimeError("Error in worker_init_fn")

    with pytest.raises(RuntimeError, match="Error in __iter__"):
        list(DataLoader(NoIterator(), num_workers=2))
    with pytest.raises(RuntimeError, match="Error in worker_init_fn"):
        list(DataLoader(numbers(), num_workers=2, worker_init_fn=init))
