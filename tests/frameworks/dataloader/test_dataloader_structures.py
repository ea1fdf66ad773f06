"""What a batch is: structures, kinds of elements, and what a collate_fn makes."""

import collections
import functools
import os
import re

import numpy as np
import pytest
import torch
from loader_datasets import Pair, Squares, Structures, check_same, numbers
from torch.utils.data import Dataset, IterableDataset

from penstock.torch import DataLoader


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
