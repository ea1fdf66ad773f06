"""The rows of Zarr arrays, for penstock.Dataset.from_python.

    dataset = penstock.Dataset.from_python(ZarrRows("train.zarr", ["image", "label"])).global_shuffle(seed=7).batch(64)
"""


class ZarrRows:
    """Args: store: a path or an address, as zarr.open_group takes it; names: of arrays whose first axes have one size."""

    def __init__(self, store, names):
        self.store = store
        self.names = list(names)
        self._group = None  # each process opens its own
        self._count = {self._array(name).shape[0] for name in self.names}.pop()
        self._group = None

    def _array(self, name):
        if self._group is None:
            import zarr

            self._group = zarr.open_group(self.store, mode="r")
        return self._group[name]

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        return {name: self._array(name)[index] for name in self.names}

    def __getitems__(self, indices):
        columns = {name: self._array(name).oindex[indices] for name in self.names}
        return [{name: columns[name][row] for name in self.names} for row in range(len(indices))]
