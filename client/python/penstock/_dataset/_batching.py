"""Batches and windows of elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Optional

import numpy as np

from penstock import _dtypes
from penstock._dataset import _cardinality
from penstock._dataset._arguments import at_least, check_unused, integer, optional
from penstock._dataset._chain import ASK
from penstock._spec import _textproto
from penstock._spec._stage import Trait, declare

if TYPE_CHECKING:
    from penstock._dataset import Dataset


declare("prefetch", Trait.MOVES_PATHS)
declare("window", Trait.NESTS_ELEMENTS)
declare("pack", Trait.BY_VALUE)


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

    def pack(
        self,
        sequence_length: int,
        tokens: Optional[str] = None,
        method: str = "concat",
        *,
        split_documents: Optional[bool] = None,
        long_documents: str = "split",
        window: int = 10_000,
        pad_id: int = 0,
        end_id: Optional[int] = None,
        max_documents: Optional[int] = None,
        drop_remainder: bool = False,
        segment_ids: bool = False,
        positions: bool = False,
        cu_seqlens: bool = False,
        loss_mask: bool = False,
        mask: Optional[str] = None,
        answer_begin: Optional[str] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Packs documents into sequences of `sequence_length` tokens: dicts of `tokens`, and of what else is asked for.

        It goes by an index of tokens where `penstock index --tokens` has made one: no document is computed to pack it then.

        Args:
          tokens: the feature with a document's token ids, int32 or int64 of shape [None]; by default the only feature.
          method: "concat" puts one document after another; "best_fit" and "first_fit_decreasing" put the longest documents of a
            window first, each where it fits.
          split_documents: whether a document goes on in the next sequence; only for "concat", and then by default.
          long_documents: "split", "truncate" or "error", for documents longer than a sequence.
          window: documents that are packed together, beginning with an empty sequence.
          pad_id: the token behind the last document of a sequence.
          end_id: a token that is appended to each document.
          max_documents: the most documents, or parts of them, in a sequence.
          drop_remainder: whether a window's last sequence is left out unless it is full; only for "concat".
          segment_ids: whether `segment_ids`, int32 [sequence_length], is made: 1 for the first document, and 0 for padding.
          positions: whether `positions`, int32 [sequence_length], is made: the place of each token in its document's part.
          cu_seqlens: whether `cu_seqlens`, int32, is made: where each document begins, and where the last one ends; of
            max_documents + 1 numbers, or of as many as there are.
          loss_mask: whether `loss_mask`, [sequence_length], is made: True for tokens, unless `mask` or `answer_begin` say more.
          mask: the feature that holds the mask of each token, of any type.
          answer_begin: the feature that holds the number of the first token that counts.
        """
        if method not in ("concat", "best_fit", "first_fit_decreasing"):
            raise ValueError(f"method is concat, best_fit or first_fit_decreasing: {method!r}")
        if long_documents not in ("split", "truncate", "error"):
            raise ValueError(f"long_documents is split, truncate or error: {long_documents!r}")
        if method != "concat" and (split_documents is not None or drop_remainder):
            raise ValueError(f"split_documents and drop_remainder are for the method concat, not {method}")
        if mask is not None and answer_begin is not None:
            raise ValueError("mask and answer_begin exclude each other")
        fields = [
            ("sequence_length", at_least(1, sequence_length, "sequence_length")),
            ("tokens", tokens),
            ("method", None if method == "concat" else method),
            ("split_documents", None if split_documents is None else bool(split_documents)),
            ("long_documents", None if long_documents == "split" else long_documents),
            ("window", at_least(1, window, "window")),
            ("pad_id", optional(pad_id, "pad_id") or None),
            ("end_id", optional(end_id, "end_id")),
            ("max_documents", None if max_documents is None else at_least(1, max_documents, "max_documents")),
            ("drop_remainder", drop_remainder or None),
            ("segment_ids", segment_ids or None),
            ("positions", positions or None),
            ("cu_seqlens", cu_seqlens or None),
            ("loss_mask", True if loss_mask or mask is not None or answer_begin is not None else None),
            ("mask", mask),
            ("answer_begin", answer_begin),
        ]
        return self._then("pack", fields, ASK, _cardinality.of_values(self._count), name)

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
