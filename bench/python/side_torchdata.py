"""torchdata's StatefulDataLoader: torch's DataLoader with a state. For `resume` alone."""

from torch_dataset import Elements
from torchdata.stateful_dataloader import StatefulDataLoader


def _loader(function, batch, workers):
    return StatefulDataLoader(Elements(function), batch_size=batch, num_workers=workers, drop_last=True)


def state_behind(steps, function, batch, workers):
    loader = _loader(function, batch, workers)
    rows = iter(loader)
    for _ in range(steps):
        next(rows)
    return loader.state_dict()


def batches_from(state, function, batch, workers):
    loader = _loader(function, batch, workers)
    loader.load_state_dict(state)
    for rows in loader:
        yield (rows.numpy(),)
