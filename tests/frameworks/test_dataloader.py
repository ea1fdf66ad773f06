"""penstock.torch.DataLoader in the place of torch's: the same batches, structures and errors, and a state besides.

docs/dataloader_table.md says which of torch's own tests each of these stands for.
"""

import ast
import collections
import functools
import inspect
import itertools
import json
import multiprocessing
import os
import pathlib
import random
import re
import signal
import subprocess
import sys
import textwrap
import threading

import numpy as np
import penstock
import pytest
import torch
from torch.utils.data import Dataset, IterableDataset, TensorDataset
from torch.utils.data.distributed import DistributedSampler

from penstock.torch import DataLoader

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


def halves(samples):
    """A collate_fn."""
    return torch.stack([sample[0] / 2 for sample in samples])


def seeds_nothing(word, worker):
    """A worker_init_fn."""


def generator(seed=42):
    return torch.Generator().manual_seed(seed)


# --- order --------------------------------------------------------------------------------------

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


# --- structures ---------------------------------------------------------------------------------


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


def test_structures_are_those_of_default_collate():
    theirs = list(torch.utils.data.DataLoader(Structures(), batch_size=4))
    check_same(list(DataLoader(Structures(), batch_size=4, num_workers=2)), theirs)
    check_same(list(DataLoader(Structures(), batch_size=None, num_workers=2)), list(torch.utils.data.DataLoader(Structures(), batch_size=None)))


def test_tensors_are_the_loops_to_write_to():
    loader = DataLoader(numbers(), batch_size=10, num_workers=1)
    for images, _ in loader:
        images.mul_(0)
    batches = list(loader)  # more than the ring has slots
    assert torch.equal(torch.cat([images for images, _ in batches]), numbers().tensors[0])


class Bag:
    def __init__(self, elements):
        self.elements = elements
        self.sum = sum(elements)


def test_collate_fn_gives_what_it_likes():
    class Local:
        def __init__(self, value):
            self.value = value

    def packed(batch):
        rows = [torch.arange(1.0 + index % 4) for index in batch]
        return torch.nn.utils.rnn.pack_sequence(rows, enforce_sorted=False)

    bags = list(DataLoader(Squares(), batch_size=8, num_workers=2, collate_fn=Bag))
    assert [bag.sum for bag in bags] == [sum(index * index for index in range(first, first + 8)) for first in range(0, 40, 8)]
    (local, *_) = DataLoader(Squares(), batch_size=8, num_workers=1, collate_fn=lambda batch: Local(np.array(batch)))
    assert isinstance(local, Local) and local.value.tolist() == [index * index for index in range(8)]
    local.value[0] = 5  # writable, as torch's
    for ours, theirs in zip(DataLoader(range(8), batch_size=4, num_workers=1, collate_fn=packed), map(packed, [range(4), range(4, 8)])):
        assert isinstance(ours, torch.nn.utils.rnn.PackedSequence)
        check_same(list(ours), list(theirs))


def test_batches_whose_shapes_differ():
    def padded(batch):
        return torch.nn.utils.rnn.pad_sequence([torch.arange(index) for index in batch], batch_first=True)

    check_same(list(DataLoader(range(30), batch_size=7, num_workers=2, collate_fn=padded)), list(torch.utils.data.DataLoader(range(30), batch_size=7, collate_fn=padded)))


@pytest.mark.filterwarnings("ignore:.*nested tensors")
def test_nested_tensors():
    nested = [torch.nested.nested_tensor([torch.arange(float(size))]) for size in (2, 5)]
    for size, (tensor,) in zip((2, 5), DataLoader(nested, num_workers=1, collate_fn=lambda batch: [tensor.clone() for tensor in batch])):
        assert tensor.is_nested and torch.equal(tensor[0], torch.arange(float(size)))
    with pytest.raises(RuntimeError, match="not currently supported by the default collate_fn"):
        next(iter(DataLoader(nested, num_workers=1)))


@pytest.mark.parametrize("make", [
    lambda x: x.to_sparse(),
    lambda x: torch.quantize_per_tensor(x, 0.5, 0, torch.quint8),
    lambda x: torch.view_as_complex(x.reshape(-1, 2)).conj(),
    lambda x: torch.view_as_complex(x.reshape(-1, 2)).conj().imag,
], ids=["sparse", "quantized", "conjugated", "negated"])  # fmt: skip
def test_tensors_that_are_not_their_memory(make):
    made = [make(torch.arange(4.0) + number) for number in range(3)]
    loaded = [tensor for (tensor,) in DataLoader(made, num_workers=1, collate_fn=lambda batch: [tensor.clone() for tensor in batch])]
    plain = [(tensor.dequantize() if tensor.is_quantized else tensor.to_dense() if tensor.is_sparse else tensor.resolve_conj().resolve_neg()) for tensor in made]
    for tensor, expected in zip(loaded, plain, strict=True):
        found = tensor.dequantize() if tensor.is_quantized else tensor.to_dense() if tensor.is_sparse else tensor
        assert torch.equal(found, expected)


class Kinds(Dataset):
    """Elements of more than 4 KB, whose arrays go into the batch as they come; of `odd` one has another shape, type or structure."""

    def __init__(self, odd=None):
        self.odd = odd

    def __len__(self):
        return 10

    def __getitem__(self, index):
        array = np.full((40, 30), index, np.float64)
        element = {"array": array, "pair": (torch.from_numpy(array[:, ::2].copy()), [array.astype(np.int32), "text"]), "bits": torch.full((5000,), index, dtype=torch.bfloat16)}
        if index == 7 and self.odd == "shape":
            element["array"] = array[:-1]
        if index == 7 and self.odd == "type":
            element["array"] = array.astype(np.float32)
        if index == 7 and self.odd == "structure":
            element["pair"] = element["pair"][0]
        if index == 7 and self.odd == "strides":
            element["array"] = np.asfortranarray(array)
        if index == 5 and self.odd == "first":
            element["array"] = torch.from_numpy(array)
        return element


@pytest.mark.parametrize("odd", [None, "shape", "type", "structure", "strides", "first"])
def test_arrays_go_into_the_batch_as_they_come(odd):
    def taken(kind, **options):
        """Batches, or the type of what is raised in the place of one."""
        batches = iter(kind(Kinds(odd), batch_size=5, **options))
        found = []
        for _ in range(2):
            try:
                found.append(next(batches))
            except (RuntimeError, TypeError, AttributeError) as error:
                found.append(type(error))
        return found

    theirs = taken(torch.utils.data.DataLoader)
    check_same(taken(DataLoader, num_workers=1), theirs)
    # An error's row is not as large as the batch would have been.
    assert (theirs[1] in (RuntimeError, TypeError, AttributeError)) == (odd in ("shape", "structure", "first"))


def test_an_iterables_arrays_go_into_the_batch():
    class Arrays(IterableDataset):
        def __iter__(self):
            memory = np.empty((50, 50), np.float32)
            for index in range(11):
                memory.fill(index)
                yield memory.copy(), index

    check_same(list(DataLoader(Arrays(), batch_size=4, num_workers=1)), list(torch.utils.data.DataLoader(Arrays(), batch_size=4)))


def test_getitems_takes_whole_batches():
    class Bulk(Dataset):
        def __len__(self):
            return 20

        def __getitem__(self, index):
            raise AssertionError("__getitems__ is there")

        def __getitems__(self, indices):
            assert isinstance(indices, list)
            return [torch.tensor([index, len(indices)]) for index in indices]

    assert torch.cat(list(DataLoader(Bulk(), batch_size=6, num_workers=1)))[:, 1].tolist() == [6] * 18 + [2] * 2

    class OfLists(Dataset):
        def __len__(self):
            return 20

        def __getitem__(self, indices):
            return torch.as_tensor(indices)

    sampler = [[0, 3], [5, 6, 7]]
    assert [batch.tolist() for batch in DataLoader(OfLists(), batch_size=None, sampler=sampler, num_workers=1)] == sampler


def test_keys_that_are_no_integers():
    class ByName(dict):
        pass

    names = ByName(one=1, two=2, three=3)
    assert [batch.tolist() for batch in DataLoader(names, sampler=["three", "one"], batch_size=2, num_workers=1)] == [[3, 1]]


# --- errors -------------------------------------------------------------------------------------


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


class OfKinds(Dataset):
    """Elements of one kind each, of some that default_collate has a word on."""

    KINDS = {
        **{f"np.{name}": functools.partial(lambda name, index: getattr(np, name)(index), name)
           for name in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool_")},
        "memmap": lambda index: np.memmap(os.environ["PENSTOCK_MEMMAP"], np.int16, "c", shape=(4,)),
        "mapping": lambda index: collections.OrderedDict(a=index, b=[index]),
        "defaultdict": lambda index: collections.defaultdict(int, {"a": index}),
        "namedtuple": lambda index: Pair(index, str(index)),
        "sequence": lambda index: collections.UserList([index, float(index)]),
        "array of objects": lambda index: np.array([index, "x"], object),
        "array of strings": lambda index: np.array(["text", "x"]),
        "array of bytes": lambda index: np.array([b"text", b"x"]),
        "sequences of two sizes": lambda index: [index] * (1 + index % 2),
        "None": lambda index: None,
    }  # fmt: skip

    def __len__(self):
        return 4 * len(self.KINDS)

    def __getitem__(self, index):
        return list(self.KINDS.values())[index // 4](index % 4)


def test_default_collate_of_kinds(tmp_path, monkeypatch):
    np.arange(4, dtype=np.int16).tofile(tmp_path / "memmap")
    monkeypatch.setenv("PENSTOCK_MEMMAP", str(tmp_path / "memmap"))
    # A batch for each kind.
    ours = iter(DataLoader(OfKinds(), batch_size=4, num_workers=1))
    refused = []
    for kind, make in OfKinds.KINDS.items():
        try:
            theirs = torch.utils.data.default_collate([make(index) for index in range(4)])
        except (TypeError, RuntimeError) as error:
            refused.append(kind)
            with pytest.raises(type(error), match=re.escape(str(error))):
                next(ours)
        else:
            check_same(next(ours), theirs)
    assert refused == ["array of objects", "array of strings", "array of bytes", "sequences of two sizes", "None"]
    assert next(ours, None) is None


def test_data_pipes_are_sharded_as_torchs():
    from torch.utils.data.datapipes.iter import IterableWrapper

    def pipe():
        return IterableWrapper(range(20)).map(functools.partial(max, 3)).sharding_filter()

    theirs = list(torch.utils.data.DataLoader(pipe(), batch_size=4, num_workers=2, multiprocessing_context="fork"))
    check_same(list(DataLoader(pipe(), batch_size=4, num_workers=2)), theirs)
    # Each element comes once; what is no pickle's goes by cloudpickle.
    doubled = IterableWrapper(range(20)).map(lambda x: 2 * x).sharding_filter()
    assert sorted(torch.cat(list(DataLoader(doubled, num_workers=2))).tolist()) == list(range(0, 40, 2))


def test_what_has_no_effect_is_said():
    from penstock._loading import _loader

    _loader._told.clear()
    with pytest.warns(UserWarning, match="multiprocessing_context has no effect"):
        loader = DataLoader(numbers(), num_workers=1, multiprocessing_context="spawn", in_order=False)
    assert loader.multiprocessing_context.get_start_method() == "spawn"
    assert len(list(loader)) == 100


@pytest.mark.parametrize("held", ["file", "lock", "pipe", "generator", "h5py", "lmdb"])
def test_what_cannot_be_pickled_is_named(held, tmp_path):
    if held == "h5py":
        value = pytest.importorskip("h5py").File(tmp_path / "x.h5", "w")
    elif held == "lmdb":
        value = pytest.importorskip("lmdb").open(str(tmp_path / "x"))
    else:
        value = {
            "file": lambda: open(__file__), "lock": threading.Lock, "pipe": lambda: multiprocessing.Queue(), "generator": lambda: (x for x in "x"),
        }[held]()  # fmt: skip

    class Holder(Dataset):
        def __init__(self):
            self.inner = {"deep": [1, value]}

        def __len__(self):
            return 3

        def __getitem__(self, index):
            return index

    with pytest.raises(TypeError, match=r"dataset\.inner\['deep'\]\[1\].*cannot be given to worker processes"):
        list(DataLoader(Holder(), num_workers=1))
    assert len(list(DataLoader(Holder()))) == 3
    with pytest.raises(TypeError, match="collate_fn uses value"):
        list(DataLoader(range(3), num_workers=1, collate_fn=lambda batch: value))


def test_a_handle_that_is_opened_in_the_worker():
    class Lazy(Dataset):
        file = None

        def __len__(self):
            return 3

        def __getitem__(self, index):
            if self.file is None:
                self.file = open(__file__)
            self.file.seek(0)
            return self.file.read(index + 1)

    assert [text for (text,) in DataLoader(Lazy(), num_workers=2)] == ['"', '""', '"""']


# --- workers ------------------------------------------------------------------------------------


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


# --- iterables ----------------------------------------------------------------------------------


class Parts(IterableDataset):
    """As many numbers for each worker as it is told."""

    def __init__(self, sizes):
        self.sizes = sizes

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        return iter(range(1000 * info.id, 1000 * info.id + self.sizes[info.id]))

    def __len__(self):
        return sum(self.sizes)


def test_iterables_by_turns():
    assert list(DataLoader(Parts([0, 4, 9]), num_workers=3, batch_size=None)) == [1000, 2000, 1001, 2001, 1002, 2002, 1003, *range(2003, 2009)]
    loader = DataLoader(Parts([0, 4, 9]), num_workers=3, batch_size=4)
    assert [batch.tolist() for batch in loader] == [[1000, 1001, 1002, 1003], [2000, 2001, 2002, 2003], [2004, 2005, 2006, 2007], [2008]]
    assert len(list(DataLoader(Parts([0, 4, 9]), num_workers=3, batch_size=4, drop_last=True))) == 3


def test_iterables_without_workers():
    class Numbers(IterableDataset):
        def __iter__(self):
            return iter(range(20))

        def __len__(self):
            return 20

    for workers in (0, 1):
        assert list(DataLoader(Numbers(), batch_size=None, num_workers=workers)) == list(range(20))
        chained = Numbers() + Numbers()
        assert torch.cat(list(DataLoader(chained, num_workers=workers, batch_size=8))).tolist() == [*range(20), *range(20)]
    loader = DataLoader(Numbers(), num_workers=2)
    assert len(loader) == 20
    with pytest.warns(UserWarning, match="samples have been fetched"):
        assert len(list(loader)) == 40


def test_an_iterable_goes_on():
    def loader():
        return DataLoader(Parts([3, 14, 9]), num_workers=3, batch_size=2, generator=generator())

    whole = list(loader())
    for count in (0, 1, 4, len(whole) - 1):
        first = loader()
        iterator = iter(first)
        taken = [next(iterator) for _ in range(count)]
        second = loader()
        second.load_state_dict(json.loads(json.dumps(first.state_dict(), default=bytes.hex)))
        check_same(taken + list(second), whole)
    other = DataLoader(Parts([3, 14, 9]), num_workers=2)
    with pytest.raises(penstock.FailedPreconditionError, match="num_workers=3"):
        other.load_state_dict(first.state_dict())


class Counting(IterableDataset):
    """Goes on by a state, and writes down where it began. `of` has the state: "dataset", "iterator", or "odd" for one that no notation has."""

    def __init__(self, of, file):
        self.of = of
        self.file = file
        self.begin = 0

    def __iter__(self):
        with open(self.file, "a") as file:
            file.write(f"{self.begin}\n")
        counter = Counter(self, self.begin)
        self.begin = 0
        return counter if self.of == "iterator" else self.drawn(counter)

    def drawn(self, counter):
        for number in counter:
            self.next = number + 1
            yield number, random.random()


class Counter:
    def __init__(self, dataset, number):
        self.dataset = dataset
        self.number = number

    def __iter__(self):
        return self

    def __next__(self):
        if self.number == 60:
            raise StopIteration
        self.number += 1
        return self.number - 1

    def state_dict(self):
        return {"number": self.number}

    def load_state_dict(self, state):
        self.number = state["number"]
        with open(self.dataset.file, "a") as file:
            file.write(f"{self.number}\n")


class Stateful(Counting):
    next = 0

    def state_dict(self):
        return {"next": torch.tensor(self.next) if self.of == "odd" else self.next, "tuple": (1, {2: b"3"})}

    def load_state_dict(self, state):
        assert state["tuple"] == (1, {2: b"3"}), "a state comes back as it was"
        self.begin = int(state["next"])


@pytest.mark.parametrize("workers", [0, 1, 2])
@pytest.mark.parametrize("of", ["dataset", "iterator", "odd"])
def test_an_iterable_goes_on_by_its_state(of, workers, tmp_path):
    def loader():
        kind = Counting if of == "iterator" else Stateful
        return DataLoader(kind(of, tmp_path / "begun"), num_workers=workers, batch_size=4, generator=generator())

    whole = list(loader())
    assert len(whole) == 15 * max(1, workers)
    first = loader()
    iterator = iter(first)
    for count in (1, 10):
        taken = [next(iterator) for _ in range(count - (count == 10))]
        state = json.loads(json.dumps(first.state_dict()))
        (tmp_path / "begun").write_text("")
        second = loader()
        second.load_state_dict(state)
        rest = list(second)
        check_same(rest, whole[count:]) if workers or of == "iterator" else check_same([batch[0] for batch in rest], [batch[0] for batch in whole[count:]])
        # Some element in the midst, and no worker has begun anew. A fast state may have been left out.
        begun = sorted(map(int, (tmp_path / "begun").read_text().split()))
        assert begun[-1] > 0, "it began again from its first element"


def test_a_state_of_another_kind_of_loader_is_refused():
    def begun(dataset, workers):
        loader = DataLoader(dataset, num_workers=workers, batch_size=None)
        next(iter(loader))
        return loader.state_dict()

    class Numbers(IterableDataset):
        def __iter__(self):
            return iter(range(9))

    kinds = [(Squares(), 0), (Numbers(), 0), (Numbers(), 1)]
    states = [begun(*kind) for kind in kinds]
    for kind in kinds:
        for other, state in zip(kinds, states):
            loader = DataLoader(kind[0], num_workers=kind[1], batch_size=None)
            if other is kind:
                loader.load_state_dict(state)
                continue
            with pytest.raises(penstock.FailedPreconditionError, match="the state is that of .*, and this is a loader over"):
                loader.load_state_dict(state)


# --- states -------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_a_state_goes_on_anywhere(order):
    def loader(workers):
        return DataLoader(numbers(), **ORDERS[order](), num_workers=workers)

    torch.manual_seed(3)
    whole = list(loader(0))
    rng = random.Random(order)
    for workers, then in ((0, 2), (2, 0), (2, 1)):
        count = rng.randrange(len(whole))
        torch.manual_seed(3)
        first = loader(workers)
        iterator = iter(first)
        taken = [next(iterator) for _ in range(count)]
        state = json.loads(json.dumps(first.state_dict(), default=bytes.hex))
        del iterator
        torch.manual_seed(99)
        before = torch.get_rng_state()
        second = loader(then)
        second.load_state_dict(state)
        check_same(taken + list(second), whole)
        assert torch.equal(torch.get_rng_state(), before) or "torch" not in ast.literal_eval(state["position"])["generators"]


def test_epochs_behind_a_state_are_those_that_follow():
    def loader(**options):
        return DataLoader(Drawing(), batch_size=4, shuffle=True, num_workers=2, generator=generator(), **options)

    for options in ({}, {"persistent_workers": True}):
        reference = loader(**options)
        epochs = [list(reference) for _ in range(3)]
        first = loader(**options)
        list(first)
        iterator = iter(first)
        taken = [next(iterator), next(iterator)]
        state = first.state_dict()
        second = loader(**options)
        second.load_state_dict(state)
        assert second.state_dict() == state
        check_same(taken + list(second), epochs[1])
        if not options:
            check_same(list(second), epochs[2])


def changed(state, **parts):
    """A state with other parts of its position."""
    return {**state, "position": repr({**ast.literal_eval(state["position"]), **parts})}


def test_a_state_behind_the_last_batch_is_that_of_the_next_epoch():
    """A trainer's epoch ends with its last batch; set_epoch() begins the next one then."""

    def loader():
        return DataLoader(numbers(), batch_size=10, shuffle=True, num_workers=1, generator=generator())

    reference = loader()
    epochs = [list(reference) for _ in range(3)]
    first = loader()
    first.set_epoch(0)
    batches = iter(first)
    for _ in range(10):
        next(batches)
    state = first.state_dict()
    second = loader()
    second.load_state_dict(state)
    assert list(second) == []
    check_same(list(second), epochs[1])
    second = loader()
    second.load_state_dict(state)
    second.set_epoch(1)
    check_same(list(second), epochs[1])
    # Between two epochs, too, the generator goes on.
    list(first)
    second = loader()
    second.load_state_dict(json.loads(json.dumps(second.state_dict())))
    check_same(list(second), epochs[0])
    second = loader()
    second.load_state_dict(json.loads(json.dumps(reference_at(loader(), 2))))
    check_same(list(second), epochs[2])


def reference_at(loader, epochs):
    """The state behind so many epochs."""
    for _ in range(epochs):
        list(loader)
    return loader.state_dict()


def test_another_sampler_is_refused():
    first = DataLoader(numbers(), batch_size=5, shuffle=True, num_workers=1, generator=generator())
    iterator = iter(first)
    next(iterator)
    state = first.state_dict()
    for options in (dict(batch_size=4, shuffle=True, generator=generator()), dict(batch_size=5, sampler=range(50))):
        second = DataLoader(numbers(), num_workers=1, **options)
        second.load_state_dict(changed(state, generators={}) if "sampler" in options else state)
        with pytest.raises(penstock.FailedPreconditionError, match="the sampler gives other indices"):
            next(iter(second))
    begun = {"penstock_dataloader": 1, "epoch": 0}
    for wrong in ({}, {"epoch": 1}, [], begun, {**begun, "position": 3}, {**begun, "position": "{'batches': 3}"}):
        with pytest.raises(penstock.InvalidArgumentError, match="expected a state of penstock.torch.DataLoader"):
            second.load_state_dict(wrong)


def test_workers_number_counts_where_it_is_asked_for():
    first = DataLoader(Informed(), num_workers=2, worker_init_fn=set_value)
    next(iter(first))
    with pytest.raises(penstock.FailedPreconditionError, match="num_workers=2"):
        DataLoader(Informed(), num_workers=3, worker_init_fn=set_value).load_state_dict(first.state_dict())

    class Asking(Dataset):
        def __len__(self):
            return 9

        def __getitem__(self, index):
            return torch.utils.data.get_worker_info().id

    first = DataLoader(Asking(), num_workers=2)
    iterator = iter(first)
    next(iterator)
    assert "num_workers" in first.state_dict()["position"]
    first = DataLoader(Squares(), num_workers=2)
    iterator = iter(first)
    next(iterator)
    assert "num_workers" not in first.state_dict()["position"]


def test_a_sampler_with_a_state_of_its_own():
    class Walk:
        """Draws by itself, from nobody's generator."""

        def __init__(self):
            self.at = 1

        def __iter__(self):
            for _ in range(20):
                self.at = self.at * 5 % 97
                yield self.at

        def __len__(self):
            return 20

        def state_dict(self):
            return {"at": self.at}

        def load_state_dict(self, state):
            self.at = state["at"]

    first = DataLoader(numbers(), sampler=Walk(), num_workers=1)
    list(first)
    iterator = iter(first)
    taken = [next(iterator)[1].item() for _ in range(7)]
    second = DataLoader(numbers(), sampler=Walk(), num_workers=1)
    second.load_state_dict(first.state_dict())
    del iterator
    reference = Walk()
    expected = [7 * index for index in [*reference, *reference]][20:]
    assert taken + [label.item() for _, label in second] == expected


def test_states_between_epochs():
    loader = DataLoader(numbers(), batch_size=50, num_workers=1)
    assert loader.state_dict() == {"penstock_dataloader": 1, "epoch": 0, "position": ""}
    list(loader)
    assert loader.state_dict() == {"penstock_dataloader": 1, "epoch": 1, "position": ""}
    other = DataLoader(numbers(), batch_size=50)
    other.load_state_dict(loader.state_dict())
    assert len(list(other)) == 2 and other.state_dict()["epoch"] == 2


# --- where it is written ------------------------------------------------------------------------

SCRIPT = """
import torch
from torch.utils.data import Dataset
from penstock.torch import DataLoader

class Mine(Dataset):
    def __len__(self):
        return 6
    def __getitem__(self, index):
        return twice(index)

def twice(index):
    return 2 * index

class Found:
    def __init__(self, batch):
        self.rows = torch.tensor(batch)

for found in DataLoader(Mine(), batch_size=3, num_workers=2, collate_fn=lambda batch: Found(batch)):
    assert isinstance(found, Found)
    print(found.rows.tolist(), flush=True)
"""


@pytest.mark.parametrize("way", ["script without a guard", "-c", "stdin", "notebook"])
def test_code_of_main(way, tmp_path):
    command = [sys.executable]
    text = None
    if way == "-c":
        command += ["-c", SCRIPT]
    elif way == "stdin":
        command, text = [*command, "-"], SCRIPT
    else:
        path = tmp_path / "script.py"
        # A notebook's cells are compiled by names that are no files.
        path.write_text(SCRIPT if way != "notebook" else f"exec(compile({SCRIPT!r}, '<ipython-input-1>', 'exec'))")
        command.append(str(path))
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, cwd=tmp_path)
    assert done.stdout.splitlines() == ["[0, 2, 4]", "[6, 8, 10]"], done.stderr


def test_no_file_in_dev_shm():
    def torchs():
        return {name for name in os.listdir("/dev/shm") if name.startswith("torch_")}

    before = torchs()
    iterator = iter(DataLoader(numbers(), batch_size=10, num_workers=2, collate_fn=lambda batch: torch.utils.data.default_collate(batch)))
    batch = next(iterator)
    assert torchs() == before and not batch[0].is_shared()


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


# --- without cloudpickle ------------------------------------------------------------------------


@pytest.fixture
def no_cloudpickle(monkeypatch):
    monkeypatch.setitem(sys.modules, "cloudpickle", None)


@pytest.mark.parametrize("arguments", [{}, {"collate_fn": halves}, {"worker_init_fn": functools.partial(seeds_nothing, "a word")}])
def test_without_cloudpickle_what_stands_in_modules_works(no_cloudpickle, arguments):
    ours, theirs = (
        loader(numbers(), batch_size=7, shuffle=True, num_workers=2, generator=generator(), **arguments)
        for loader in (DataLoader, torch.utils.data.DataLoader)
    )
    check_same(list(ours), list(theirs))


@pytest.mark.parametrize("what, arguments", [
    ("collate_fn", {"collate_fn": lambda samples: samples}),
    ("worker_init_fn", {"worker_init_fn": lambda worker: None}),
])  # fmt: skip
def test_without_cloudpickle_what_stands_in_no_module_is_refused_by_name(no_cloudpickle, what, arguments):
    with pytest.raises(TypeError, match=rf'^{what} is a builtins.function, which cannot be given .* go by cloudpickle: pip install "penstock\[python\]"$'):
        next(iter(DataLoader(numbers(), num_workers=1, **arguments)))


def test_without_cloudpickle_a_dataset_of_a_local_class_is_refused_by_name(no_cloudpickle):
    class Local(Squares):
        pass

    with pytest.raises(TypeError, match=r'^dataset is a .*Local, which cannot be given to worker processes'):
        next(iter(DataLoader(Local(), num_workers=1)))


# --- the table ----------------------------------------------------------------------------------


# What a test of torch's with such a name is about: one of the tests that its row names says that word.
ABOUT = {
    "_pin": "pin_memory", "prefetch": "prefetch_factor", "drop_last": "drop_last", "worker_init": "worker_init_fn", "timeout": "timeout", "memmap": "memmap",
    "numpy_scalars": r"np\.\{name\}", "mapping_keep": "OrderedDict", "sequence": "UserList|sequences of", "bad_numpy": "array of strings", "namedtuple": "Pair",
    "persistent": "persistent_workers", "affinity": "sched_setaffinity", "generator": "generator", "growing": "length", "datapipe": "datapipes",
    "thread_creation": "warns", "contexts": "multiprocessing_context", "worker_info": "get_worker_info", "iterable": "IterableDataset", "segfault": "SIGSEGV|multiprocessing_context",
    "sampler": "sampler", "batch_none": "batch_size=None",
}  # fmt: skip


def source_of(test):
    """A test's text, with the tables and the classes of this module that it names."""
    text = inspect.getsource(globals()[test])
    for name in set(re.findall(r"\b(ORDERS|[A-Z]\w+)\b", text)):
        found = globals().get(name)
        if isinstance(found, type) and found.__module__ == __name__:
            text += inspect.getsource(found)
        elif name == "ORDERS":
            text += pathlib.Path(__file__).read_text().partition("\nORDERS = {")[2].partition("\n}\n")[0]
    return text


def test_the_table_names_tests_that_are_about_the_same():
    table = pathlib.Path(__file__).parents[2] / "docs" / "dataloader_table.md"
    wrong = []
    for name, note in re.findall(r"^\| `(\w+)` \| (?:passes|differs) \| (.*) \|$", table.read_text(), re.MULTILINE):
        text = "".join(map(source_of, re.findall(r"`(test_\w+)`", note)))
        wrong += [f"{name}: none of its tests says {words}" for part, words in ABOUT.items() if part in name and not re.search(words, text)]
    assert not wrong, "\n".join(wrong)


def test_the_table_names_tests_that_are_here():
    table = pathlib.Path(__file__).parents[2] / "docs" / "dataloader_table.md"
    rows = re.findall(r"^\| `(\w+)` \| (passes|differs|does not apply) \| (.*) \|$", table.read_text(), re.MULTILINE)
    assert len(rows) > 100
    for name, verdict, note in rows:
        tests = re.findall(r"`(test_\w+)`", note)
        assert tests or verdict == "does not apply", f"{name} names no test of ours"
        for test in tests:
            assert callable(globals().get(test)), f"{name} names {test}, which is not here"
