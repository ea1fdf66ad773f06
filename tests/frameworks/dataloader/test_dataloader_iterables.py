"""Datasets that are iterables, and how they go on."""

import functools
import json
import random

import penstock
import pytest
import torch
from loader_datasets import Squares, check_same, generator
from torch.utils.data import IterableDataset

from penstock.torch import DataLoader


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


def test_data_pipes_are_sharded_as_torchs():
    from torch.utils.data.datapipes.iter import IterableWrapper

    def pipe():
        return IterableWrapper(range(20)).map(functools.partial(max, 3)).sharding_filter()

    theirs = list(torch.utils.data.DataLoader(pipe(), batch_size=4, num_workers=2, multiprocessing_context="fork"))
    check_same(list(DataLoader(pipe(), batch_size=4, num_workers=2)), theirs)
    # Each element comes once; what is no pickle's goes by cloudpickle.
    doubled = IterableWrapper(range(20)).map(lambda x: 2 * x).sharding_filter()
    assert sorted(torch.cat(list(DataLoader(doubled, num_workers=2))).tolist()) == list(range(0, 40, 2))
