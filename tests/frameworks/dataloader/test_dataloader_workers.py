"""Workers: what they know, how they draw, and what they hold."""

import os
import random
import subprocess
import sys
import threading

import numpy as np
import penstock
import torch
from loader_datasets import Drawing, check_same, generator, numbers
from torch.utils.data import Dataset, IterableDataset

from penstock.torch import DataLoader


class Informed(Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        info = torch.utils.data.get_worker_info()
        return info.id, info.num_workers, info.seed, self.value


def set_value(worker):
    info = torch.utils.data.get_worker_info()
    assert info.id == worker and info.seed == torch.initial_seed()
    info.dataset.value = 100 + worker


def test_worker_info():
    dataset = Informed()
    batches = list(DataLoader(dataset, batch_size=2, num_workers=3, worker_init_fn=set_value, generator=generator()))
    assert [ids.tolist() for ids, *_ in batches] == [[index % 3] * 2 for index in range(8)]
    assert all(counts.tolist() == [3, 3] for _, counts, *_ in batches)
    assert [values.tolist() for *_, values in batches] == [[100 + index % 3] * 2 for index in range(8)]
    assert len({seeds[0].item() for _, _, seeds, _ in batches}) == 3
    assert not hasattr(dataset, "value") and torch.utils.data.get_worker_info() is None


def test_worker_init_fn_of_the_dataset_is_that_of_the_copy():
    class Knowing(Dataset):
        worker = None

        def init(self, worker):
            self.worker = worker

        def __len__(self):
            return 12

        def __getitem__(self, index):
            return self.worker, index

    dataset = Knowing()
    batches = list(DataLoader(dataset, batch_size=3, num_workers=2, worker_init_fn=dataset.init))
    assert [workers.tolist() for workers, _ in batches] == [[0] * 3, [1] * 3, [0] * 3, [1] * 3]


def test_worker_init_fn_may_seed():
    class Seed(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            return torch.initial_seed(), torch.rand(1)

    first, second = (list(DataLoader(Seed(), batch_size=2, num_workers=2, worker_init_fn=lambda worker: torch.manual_seed(12345))) for _ in range(2))
    assert all(seeds.tolist() == [12345] * 2 for seeds, _ in first)
    assert not torch.equal(first[0][1], first[1][1])


def test_draws_depend_on_no_number_of_workers():
    def drawn(workers, **options):
        return list(DataLoader(Drawing(), batch_size=4, num_workers=workers, generator=generator(), **options))

    one = drawn(1)
    check_same(drawn(2), one)
    check_same(drawn(5), one)
    for column in range(1, 4):
        values = [row for batch in one for row in batch[column].reshape(24 // len(one), -1).tolist()]
        assert len({str(value) for value in values}) == 24
    loader = DataLoader(Drawing(), batch_size=4, num_workers=2, generator=generator())
    first, second = list(loader), list(loader)
    check_same(first, one)
    assert not torch.equal(first[0][3], second[0][3])


def test_the_trainers_generators_are_its_own():
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    list(DataLoader(Drawing(), num_workers=1, generator=generator()))
    found = torch.rand(1).item(), random.random(), np.random.random()
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    assert found == (torch.rand(1).item(), random.random(), np.random.random())


def test_persistent_workers_keep_the_dataset():
    class Growing(Dataset):
        def __init__(self):
            self.start = 0

        def __len__(self):
            return 2

        def __getitem__(self, index):
            return self.start

    for persistent in (False, True):
        dataset = Growing()
        loader = DataLoader(dataset, num_workers=1, persistent_workers=persistent)
        found = []
        for epoch in range(2):
            found.append(list(loader)[0].item())
            dataset.start += 1
        assert found == ([0, 0] if persistent else [0, 1])


def test_epochs_go_on_in_the_same_processes():
    class Process(Dataset):
        def __len__(self):
            return 40

        def __getitem__(self, index):
            return os.getpid()

    loader = DataLoader(Process(), batch_size=4, num_workers=2)
    epochs = [set(torch.cat(list(loader)).tolist()) for _ in range(3)]
    assert len(set.union(*epochs)) <= 2


def test_workers_import_nothing_of_the_package_that_they_do_not_need():
    class Imported(Dataset):
        def __len__(self):
            return 1

        def __getitem__(self, index):
            import sys

            return [name for name in ("penstock._core", "penstock._dataset", "penstock._tracing") if name in sys.modules]

    assert list(DataLoader(Imported(), batch_size=None, num_workers=1)) == [[]]


def test_a_loop_that_is_open_at_the_programs_end_says_nothing(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("""
import torch, penstock.torch

def batches():
    yield from penstock.torch.DataLoader(torch.arange(8), batch_size=2, num_workers=1)

rows = batches()
next(rows)
""")
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_arrays_are_in_memory_once():
    class Large(Dataset):
        def __init__(self):
            self.tensor = torch.ones(16 << 20)
            self.array = np.ones(8 << 20)

        def __len__(self):
            return 8

        def __getitem__(self, index):
            before = self.anonymous()
            total = self.tensor.sum() + self.array.sum()
            return total, self.anonymous() - before

        def anonymous(self):
            with open("/proc/self/smaps_rollup") as file:
                return next(int(line.split()[1]) for line in file if line.startswith("Anonymous"))

    for total, more in DataLoader(Large(), num_workers=2):
        assert total.item() == (16 << 20) + (8 << 20)
        assert more.item() < 20_000, "two arrays of 64 MiB each are not to be copied"


def test_a_dataset_may_write_into_its_tensors():
    class Writing(Dataset):
        def __init__(self):
            self.tensor, self.array = torch.zeros(100_000), np.zeros(100_000)

        def __len__(self):
            return 4

        def __getitem__(self, index):
            self.tensor[0] += 1
            self.array[0] += 1
            return index

    dataset = Writing()
    assert torch.cat(list(DataLoader(dataset, num_workers=2))).tolist() == [0, 1, 2, 3]
    assert dataset.tensor[0] == 0


def test_affinity_set_by_worker_init_fn():
    class Affinity(IterableDataset):
        def __iter__(self):
            return iter(os.sched_getaffinity(0))

    processor = sorted(os.sched_getaffinity(0))[-1]
    for batch in DataLoader(Affinity(), num_workers=2, worker_init_fn=lambda worker: os.sched_setaffinity(0, [processor])):
        assert batch.tolist() == [processor]


def test_processes_end_with_the_loop():
    class Process(Dataset):
        def __len__(self):
            return 1000

        def __getitem__(self, index):
            return os.getpid()

    iterator = iter(DataLoader(Process(), num_workers=2))
    process = next(iterator).item()
    os.kill(process, 0)
    del iterator
    penstock.stop_private_daemon()
    for _ in range(1000):
        if not os.path.exists(f"/proc/{process}"):
            return
        threading.Event().wait(0.01)
    raise AssertionError("the worker is still there")


def test_no_file_in_dev_shm():
    def torchs():
        return {name for name in os.listdir("/dev/shm") if name.startswith("torch_")}

    before = torchs()
    iterator = iter(DataLoader(numbers(), batch_size=10, num_workers=2, collate_fn=lambda batch: torch.utils.data.default_collate(batch)))
    batch = next(iterator)
    assert torchs() == before and not batch[0].is_shared()
