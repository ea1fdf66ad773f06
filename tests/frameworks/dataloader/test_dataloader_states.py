"""States of a loop, and what follows them."""

import ast
import json
import random

import penstock
import pytest
import torch
from loader_datasets import ORDERS, Drawing, Squares, check_same, generator, numbers
from torch.utils.data import Dataset

from penstock.torch import DataLoader


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
