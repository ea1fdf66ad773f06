"""Batches and windows of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

import numpy as np

from penstock import _dtypes
from penstock._dataset import _cardinality
from penstock._dataset._arguments import at_least, check_unused, integer, optional
from penstock._spec import _textproto
from penstock._spec._stage import Trait, declare

if TYPE_CHECKING:
    from penstock._dataset import Dataset


declare("prefetch", Trait.MOVES_PATHS)
declare("window", Trait.NESTS_ELEMENTS)


class Batching:
    """Methods of Dataset that join elements."""

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: Optional[int] = None,
        deterministic: Optional[bool] = None,
        name: Optional[str] = None,
        *,
        remainder: Optional[str] = None,
    ) -> Dataset:
        """Joins `batch_size` elements along a new first axis.

        Args:
          drop_remainder: whether a last batch of fewer elements is left out.
          remainder: beyond tf.data, what becomes of them: "keep", "drop", "pad" (to a full batch, of which
            `valid` rows are elements) or "wrap" (with the first elements of the pass).
        """
        check_unused(num_parallel_calls)
        fields = _batch_fields(batch_size, drop_remainder, remainder)
        count = _batched(self._count, batch_size, drop_remainder, remainder)
        rows = _cardinality.of_rows(self._count, count, int(batch_size), drop_remainder, remainder)
        return self._then("batch", fields, cardinality=count, name=name, rows=rows)

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: Optional[str] = None,
        *,
        remainder: Optional[str] = None,
    ) -> Dataset:
        """Joins elements whose shapes may differ; rows are filled up behind their end.

        Args:
          padded_shapes: a nest like the element's of shapes, where None and -1 mean the largest of the batch;
            without it, that holds for every size that only the data tells.
          padding_values: a nest like the element's of numbers or strings, or one for all; None is 0 or "".
        """
        from penstock._dataset import _padding

        fields = [
            *_batch_fields(batch_size, drop_remainder, remainder),
            ("padded_shape", _padding.shapes(self._structure, padded_shapes)),
            ("padding_value", _padding.values(self._structure, padding_values)),
        ]
        count = _batched(self._count, batch_size, drop_remainder, remainder)
        rows = _cardinality.of_rows(self._count, count, int(batch_size), drop_remainder, remainder)
        return self._then("padded_batch", fields, cardinality=count, name=name, rows=rows)

    def ragged_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: Any = np.int64,
        name: Optional[str] = None,
        *,
        remainder: Optional[str] = None,
    ) -> Dataset:
        """Joins elements whose shapes may differ: such tensors become penstock.RaggedTensor.

        Args:
          row_splits_dtype: np.int64 or np.int32, of those that become ragged here.
        """
        dtype = _dtypes.as_dtype(row_splits_dtype)
        if dtype not in (np.int32, np.int64):
            raise ValueError(f"row splits are int32 or int64, not {row_splits_dtype}")
        fields = [
            *_batch_fields(batch_size, drop_remainder, remainder),
            ("int32_row_splits", True if dtype == np.int32 else None),
        ]
        count = _batched(self._count, batch_size, drop_remainder, remainder)
        rows = _cardinality.of_rows(self._count, count, int(batch_size), drop_remainder, remainder)
        return self._then("ragged_batch", fields, cardinality=count, name=name, rows=rows)

    def sparse_batch(self, batch_size: int, row_shape: Any, name: Optional[str] = None) -> Dataset:
        """Joins elements, each a lone dense tensor, to penstock.SparseTensors that hold all their values.

        Args:
          row_shape: of the dense rows, in which each element has room; None and -1 mean the largest of the batch.
        """
        shape = [-1 if size is None else integer(size, "a size of row_shape") for size in row_shape]
        fields = [("batch_size", at_least(1, batch_size, "batch_size")), ("row_shape", shape)]
        return self._then("sparse_batch", fields, cardinality=_batched(self._count, batch_size, False, None), name=name)

    def prefetch(self, buffer_size: int, name: Optional[str] = None) -> Dataset:
        """At the end: the number of elements that are held ready. Elsewhere, and with AUTOTUNE, no effect."""
        size = integer(buffer_size, "buffer_size")
        if size < -1:
            raise ValueError(f"buffer_size is at least 0, or AUTOTUNE: {size}")
        if size < 1:
            return self
        return self._then("prefetch", [("buffer_size", size)], cardinality=self._count, name=name)

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: Optional[str] = None) -> Dataset:
        """Joins the rows of batches anew, as unbatch().batch(batch_size); those of a ragged_batch directly before it as ragged_batch does.

        Args:
          batch_size: one number, or several that are taken by turns.
        """
        sizes = [integer(size, "batch_size") for size in np.atleast_1d(np.asarray(batch_size)).tolist()]
        if not sizes or min(sizes) < 1:
            raise ValueError(f"batch_size is at least 1: {batch_size}")
        fields = [("batch_size", sizes), ("drop_remainder", True if drop_remainder else None)]
        return self._then("rebatch", fields, cardinality=_cardinality.of_batches(self._rows, sizes, drop_remainder), name=name)

    def window(
        self,
        size: int,
        shift: Optional[int] = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: Optional[str] = None,
    ) -> Any:
        """Windows: datasets of `size` elements each, to be consumed by flat_map or map.

        `window(5, shift=1, drop_remainder=True).flat_map(lambda w: w.batch(5))` makes a batch of each window. An
        element that is a tuple or a dict gives a dataset for each part, as in tf.data.

        Args:
          size: elements of a window.
          shift: from the beginning of one window to that of the next; `size` by default.
          stride: from one element of a window to the next.
          drop_remainder: whether windows of fewer elements, at the end, are left out.
        """
        from penstock._dataset import _windows

        shift = optional(shift, "shift")
        fields = [
            ("size", integer(size, "size")),
            ("shift", shift),
            ("stride", integer(stride, "stride")),
            ("drop_remainder", True if drop_remainder else None),
        ]
        for field, value in fields[:3]:
            if value is not None and value < 1:
                raise ValueError(f"{field} is at least 1: {value}")
        return _windows.Windows(self, "window", fields, name)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Any,
        bucket_batch_sizes: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: Optional[str] = None,
    ) -> Dataset:
        """Joins elements of similar length to padded batches.

        Args:
          element_length_func: traced as in map; returns the element's length: `lambda x: np.shape(x["tokens"])[0]`.
          bucket_boundaries: rising lengths; bucket i holds those from boundary i - 1 to boundary i - 1.
          bucket_batch_sizes: one more than boundaries.
          padded_shapes, padding_values: as padded_batch.
          pad_to_bucket_boundary: whether unknown sizes are padded to the bucket's boundary - 1.
          no_padding: whether rows are joined as by batch.
          drop_remainder: whether batches of what is left at the end are left out.
        """
        from penstock._dataset import _grouping

        return _grouping.bucket(
            self, element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes, padding_values,
            pad_to_bucket_boundary, no_padding, drop_remainder, name,
        )  # fmt: skip

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, Dataset], Dataset],
        window_size: Optional[int] = None,
        window_size_func: Optional[Callable[[Any], Any]] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Makes windows of consecutive elements with the same key, and a dataset of each.

        Args:
          key_func: traced as in map; returns an integer.
          reduce_func: gets the key, which it cannot use, and the window, and returns a dataset made of it:
            `lambda key, window: window.batch(10)`.
          window_size: elements of a window.
          window_size_func: instead of it, traced; returns the size for a key.
        """
        from penstock._dataset import _grouping

        return _grouping.group(self, key_func, reduce_func, window_size, window_size_func, name)


def _batch_fields(batch_size, drop_remainder, remainder):
    size = at_least(1, batch_size, "batch_size")
    if remainder not in (None, "keep", "drop", "pad", "wrap"):
        raise ValueError(f"remainder is keep, drop, pad or wrap: {remainder!r}")
    if drop_remainder and remainder not in (None, "drop"):
        raise ValueError(f"drop_remainder and remainder={remainder!r} exclude each other")
    return [
        ("batch_size", size),
        ("drop_remainder", True if drop_remainder and remainder is None else None),
        ("remainder", None if remainder is None else _textproto.Bare(remainder.upper())),
    ]


def _batched(count, batch_size, drop_remainder, remainder):
    return _cardinality.of_batch(count, int(batch_size), drop_remainder or remainder == "drop")
