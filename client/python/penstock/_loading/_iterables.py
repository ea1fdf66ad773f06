"""The states of an iterable dataset, by state_dict() and load_state_dict() of it or of its iterator: the contract of torchdata's StatefulDataLoader."""


def state_of(dataset, iterator):
    """A dict of what has states, "dataset" and "iterator", or None where nothing has."""
    parts = {"iterator": iterator} if iterator is dataset else {"dataset": dataset, "iterator": iterator}
    states = {name: part.state_dict() for name, part in parts.items() if hasattr(part, "state_dict") and hasattr(part, "load_state_dict")}
    return states or None


class GoingOn:
    """An iterable whose iterator begins where a state of state_of() says."""

    def __init__(self, dataset, states):
        self._dataset = dataset
        self._states = states

    def __iter__(self):
        if "dataset" in self._states:
            self._dataset.load_state_dict(self._states["dataset"])
        iterator = iter(self._dataset)
        if "iterator" in self._states:
            iterator.load_state_dict(self._states["iterator"])
        return iterator
