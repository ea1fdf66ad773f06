"""Tensors of which only some values are there."""

from typing import NamedTuple

import numpy as np


class SparseTensor(NamedTuple):
    """Values and their places in a dense tensor, as tf.sparse.SparseTensor (and tf.compat.v1.SparseTensorValue).

    Batches of a Loader hold arrays over the ring's memory, without a copy. Values of parsed SparseFeatures may stand outside of the
    dense shape, where the data says so: nobody has compared them with it.

    Attributes:
      indices: int64 array of shape (n, axes).
      values: array of shape (n,); strings are objects of type bytes.
      dense_shape: int64 array of shape (axes,).
    """

    indices: np.ndarray
    values: np.ndarray
    dense_shape: np.ndarray

    @property
    def dtype(self):
        """The element type; object for strings, whose elements are bytes."""
        return self.values.dtype

    @property
    def shape(self):
        """dense_shape as a tuple."""
        return tuple(self.dense_shape.tolist())

    def to_dense(self, default_value=None):
        """The dense array, with `default_value` (zero, or the empty string) where no value stands, as tf.sparse.to_dense: torch's where
        the values are.

        Raises:
          IndexError: a value stands outside of the dense shape.
        """
        if default_value is None:
            default_value = b"" if self.values.dtype == object else 0
        if hasattr(self.values, "new_full"):
            dense = self.values.new_full(self.shape, default_value)
        else:
            dense = np.full(self.shape, default_value, self.values.dtype)
        if (self.indices < 0).any():
            raise IndexError("a value stands outside of the dense shape")
        if hasattr(dense, "index_put_"):
            _put(dense, self.indices, self.values)
        else:
            dense[tuple(self.indices.T)] = self.values
        return dense


def _put(dense, indices, values):
    """Of torch's tensors, whose unsigned numbers of more than 8 bits cannot be put into places: their bits can."""
    import torch

    signed = {"torch.uint16": torch.int16, "torch.uint32": torch.int32, "torch.uint64": torch.int64}.get(str(dense.dtype), dense.dtype)
    dense.view(signed)[tuple(indices.T)] = values.view(signed)
