"""The rows of an HDF5 file's arrays, for penstock.Dataset.from_python: they have numbers, so that there are a length, global_shuffle and shards.

    dataset = penstock.Dataset.from_python(Hdf5Rows("train.h5", ["image", "label"])).global_shuffle(seed=7).batch(64)
"""

import numpy as np


class Hdf5Rows:
    """Args: path: of the file; names: of arrays whose first axes have one size."""

    def __init__(self, path, names):
        self.path = path
        self.names = list(names)
        self._file = None  # each process opens its own
        self._count = {len(self._array(name)) for name in self.names}.pop()
        self._file.close()
        self._file = None

    def _array(self, name):
        if self._file is None:
            import h5py

            self._file = h5py.File(self.path, "r")
        return self._file[name]

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        return {name: self._array(name)[index] for name in self.names}

    def __getitems__(self, indices):
        """Several rows by one read of each array; HDF5 takes numbers that grow, each once."""
        places, back = np.unique(indices, return_inverse=True)
        columns = {name: self._array(name)[places] for name in self.names}
        return [{name: columns[name][place] for name in self.names} for place in back]
