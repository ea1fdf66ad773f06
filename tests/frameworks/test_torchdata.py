"""penstock.torch under torchdata's own StatefulDataLoader and nodes, as a trainer that has them uses it."""

import pickle

import penstock
import pytest
import torch

import penstock.torch
from torchdata.nodes import IterableWrapper, Loader, Mapper, Prefetcher
from torchdata.stateful_dataloader import StatefulDataLoader

EPOCH = 13


def numbers():
    return penstock.Dataset.range(100).shuffle(100, seed=5).map(lambda value: {"n": value}).batch(8)


def listed(batches):
    return [batch["n"].tolist() for batch in batches]


def under_stateful_data_loader(loader):
    return StatefulDataLoader(loader, batch_size=None)


def under_nodes(loader):
    return Loader(IterableWrapper(loader))


def under_nodes_that_fetch_ahead(loader):
    # torchdata's prefetch takes snapshots of what it has fetched, and gives the one of the batch that the loop has.
    return Loader(Prefetcher(Mapper(IterableWrapper(loader), lambda batch: {"n": batch["n"].clone()}), prefetch_factor=3))


UNDER = [under_stateful_data_loader, under_nodes, under_nodes_that_fetch_ahead]


@pytest.fixture(params=["dataset", "pipeline"])
def made(request, served):
    """made() is a loader of one and the same stream of three epochs, as another process has it."""
    if request.param == "dataset":
        return lambda: penstock.torch.loader(numbers())
    socket = served(3)
    groups = iter(range(100))
    return lambda: penstock.torch.loader("numbers", socket=socket, group=f"trainer {next(groups)}")


@pytest.mark.parametrize("under", UNDER)
def test_a_state_behind_any_batch_is_exact(made, under):
    loader = under(made())
    epochs, states = [], {}
    for epoch in range(3):
        epochs.append([])
        for batch in loader:
            epochs[-1].append(batch["n"].tolist())
            states[epoch, len(epochs[-1])] = pickle.dumps(loader.state_dict())
    assert [len(epoch) for epoch in epochs] == [EPOCH] * 3 and epochs[0] != epochs[1] != epochs[2]
    assert all(sorted(sum(epoch, [])) == list(range(100)) for epoch in epochs)
    for epoch, taken in [(0, 1), (0, 7), (0, 12), (1, 1), (1, 5), (2, 12)]:
        other = under(made())
        other.load_state_dict(pickle.loads(states[epoch, taken]))
        # What is left of the epoch, then the next ones.
        assert listed(other) == epochs[epoch][taken:], (epoch, taken)
        for further in epochs[epoch + 1:]:
            assert listed(other) == further, (epoch, taken)
        # It has a state of its own.
        assert pickle.dumps(other.state_dict())


@pytest.mark.parametrize("under", UNDER)
def test_a_state_behind_an_epoch_is_that_of_the_next(under):
    loader = under(penstock.torch.loader(numbers()))
    listed(loader)
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    second = listed(loader)
    other = under(penstock.torch.loader(numbers()))
    other.load_state_dict(state)
    # StatefulDataLoader's state is that of a loop that is over; torchdata begins the next one by itself.
    found = listed(other)
    assert found == second or (found == [] and listed(other) == second)


@pytest.mark.parametrize("under", UNDER)
def test_the_batches_are_those_of_the_loader_alone(under):
    plain, loader = penstock.torch.loader(numbers()), under(penstock.torch.loader(numbers()))
    assert [listed(loader) for _ in range(3)] == [listed(plain) for _ in range(3)]


def test_the_length_is_the_epochs():
    assert len(under_stateful_data_loader(penstock.torch.loader(numbers()))) == EPOCH


def test_torch_takes_it_for_an_iterable_dataset():
    loader = penstock.torch.loader(numbers())
    assert isinstance(loader, torch.utils.data.IterableDataset)
    assert listed(torch.utils.data.DataLoader(loader, batch_size=None)) == listed(penstock.torch.loader(numbers()))
