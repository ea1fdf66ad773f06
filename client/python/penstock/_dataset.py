"""penstock.Dataset: tf.data's names over the native engine.

A Dataset is a chain of stages and never changes; its methods give longer ones. Nothing runs before
an iteration. To add an op: a method that returns self._then(op, fields, …), with the fields of its
message in proto/penstock/v1/ops.proto.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, Optional, Union

import numpy as np

from penstock import _cardinality, _control, _daemon, _dtypes, _errors, _program, _structure, _textproto, _trace
from penstock._cardinality import INFINITE, UNKNOWN
from penstock._iterator import DatasetIterator
from penstock._options import Options, TensorSpec
from penstock._stage import Nested, Seed, Spec, Stage, of_first_pass, user_line

AUTOTUNE = -1

# The structure is asked of the daemon when it is needed.
_ASK = object()


def _integer(value, what):
    """An int of a size or a count; NumPy's will do."""
    if isinstance(value, _trace.Tensor):
        raise _trace.TraceError(
            f"{what} is a traced value", "it is a constant; enumerate() with take_while or filter decides by values"
        )
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        return int(np.asarray(value)[()].__index__())
    except (TypeError, AttributeError):
        raise TypeError(f"{what} is an integer, not {value!r}") from None


def _folder(path):
    """A folder's path for the daemon, whose own folder is another one than ours."""
    if not path:
        raise ValueError("expected the path of a folder")
    return os.path.abspath(os.fsdecode(path))


def _saved_count(folder):
    """How many elements there are, as the end of the file says; whether it is whole is the daemon's to check."""
    try:
        with open(os.path.join(folder, "elements.penstock-elements"), "rb") as file:
            file.seek(-64, os.SEEK_END)
            footer = file.read(64)
    except OSError:
        return UNKNOWN
    return int.from_bytes(footer[8:16], "little") if footer[56:60] == b"LETS" else UNKNOWN


def _no_functions(method, **arguments):
    for name, value in arguments.items():
        if value:
            raise _errors.UnimplementedError(f"{method}({name}=…) has no meaning here: there is one file, in one order")


def _apply(_, function, element):
    return function(*element) if isinstance(element, tuple) else function(element)


def _optional(value, what):
    return None if value is None else _integer(value, what)


class Dataset:
    """A sequence of elements, each a nest of dicts and tuples of tensors, as tf.data.Dataset.

    Iterating gives NumPy arrays over the daemon's memory, read-only and without a copy (penstock.attach
    says which kinds there are). Each `for` is a pass of its own from the beginning, with shuffles of
    their own unless reshuffle_each_iteration is False.

    The order depends on the files, the ops and their seeds alone. Arguments that tune tf.data's
    runtime (num_parallel_calls, AUTOTUNE, deterministic) are accepted and have no effect: all cores
    work, and deterministic=False is not faster here.

    Errors of the daemon name the line that made the stage; they are raised by the first iteration, by
    element_spec and by whatever else asks for types.
    """

    def __init__(self, stages, structure, cardinality=UNKNOWN, options=None, window=None):
        self._stages = tuple(stages)
        # A function that makes a pipeline's stages of those of a window's elements: for a dataset inside of window.
        self._window = window
        self._known_structure = structure
        self._count = cardinality
        self._options = options or Options()
        self._described = None

    def _then(self, op, fields, structure=..., cardinality=UNKNOWN, name=None):
        """This dataset with one more stage.

        Args:
          fields: pairs of the message's field and its value; None leaves it out.
          structure: of the elements behind it; by default as before.
        """
        structure = self._known_structure if structure is ... else structure
        stages = (*self._stages, Stage(op, fields, name))
        return self._like(stages, structure, cardinality)

    def _like(self, stages, structure, cardinality=UNKNOWN):
        """Those stages, where this dataset's are."""
        return Dataset(stages, structure, cardinality, self._options, self._window)

    def _whole(self, stages):
        """The stages of a pipeline."""
        return stages if self._window is None else self._window(stages)

    # --- sources ---

    @staticmethod
    def range(*args: int, output_type: Any = np.int64, name: Optional[str] = None) -> Dataset:
        """range(stop), range(start, stop[, step]): one int64 each, of shape ()."""
        if not 1 <= len(args) <= 3:
            raise TypeError(f"range takes 1 to 3 integers, not {len(args)}")
        if _trace.find_trace(args) is not None:
            from penstock import _nested

            return _nested.range_of_traced(args, output_type, name)
        numbers = [_integer(value, "an argument of range") for value in args]
        start, stop = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
        step = numbers[2] if len(numbers) == 3 else 1
        if step == 0:
            raise ValueError("range's step is not 0")
        fields = [("start", start or None), ("stop", stop), ("step", None if step == 1 else step)]
        dataset = Dataset([Stage("range", fields, name)], None, _cardinality.of_range(start, stop, step))
        output_type = _dtypes.as_dtype(output_type)
        return dataset if output_type == np.int64 else dataset.map(lambda x: x.astype(output_type))

    @staticmethod
    def counter(start: int = 0, step: int = 1, dtype: Any = np.int64, name: Optional[str] = None) -> Dataset:
        """start, start + step, … without end: one number each, of shape ()."""
        fields = [("start", _integer(start, "start") or None), ("step", _integer(step, "step"))]
        dataset = Dataset([Stage("counter", fields, name)], None, INFINITE)
        dtype = _dtypes.as_dtype(dtype)
        return dataset if dtype == np.int64 else dataset.map(lambda x: x.astype(dtype))

    @staticmethod
    def random(
        seed: Optional[int] = None, rerandomize_each_iteration: Optional[bool] = None, name: Optional[str] = None
    ) -> Dataset:
        """Numbers from 0 to 2^32 - 1 without end: one int64 each, of shape ().

        Args:
          seed: int64. Without one the numbers differ from process to process.
          rerandomize_each_iteration: whether each pass and each epoch of `repeat` has other numbers. Default False.
        """
        fields = _draws(seed, rerandomize_each_iteration)
        return Dataset([Stage("random", fields, name)], None, INFINITE)

    @staticmethod
    def sample_from_datasets(
        datasets: Any,
        weights: Any = None,
        seed: Optional[int] = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: Optional[bool] = None,
    ) -> Dataset:
        """Draws each element from one of the datasets, whose elements are of the same types.

        Args:
          weights: one number for each dataset, in any unit; by default all alike.
          seed, rerandomize_each_iteration: as random.
          stop_on_empty_dataset: whether drawing a dataset that has no more elements ends this one. By default it
            is left out from then on.
        """
        from penstock import _choosing

        return _choosing.sample(datasets, weights, _draws(seed, rerandomize_each_iteration), stop_on_empty_dataset)

    @staticmethod
    def choose_from_datasets(datasets: Any, choice_dataset: Dataset, stop_on_empty_dataset: bool = True) -> Dataset:
        """Takes each element from the dataset whose number the next element of choice_dataset is.

        Args:
          choice_dataset: int64 of shape (), from 0 to the number of datasets - 1.
          stop_on_empty_dataset: whether choosing a dataset that has no more elements ends this one; otherwise the choice
            is passed over.
        """
        from penstock import _choosing

        return _choosing.choose(datasets, choice_dataset, stop_on_empty_dataset)

    @staticmethod
    def from_tensors(tensors: Any, name: Optional[str] = None) -> Dataset:
        """One element: a nest of dicts and tuples of arrays, numbers and strings."""
        return _from_arrays("from_tensors", tensors, name)

    @staticmethod
    def from_tensor_slices(tensors: Any, name: Optional[str] = None) -> Dataset:
        """Element i is slice i of each array of a nest along its first axis, which all have in common.

        Numbers keep NumPy's types: a list of Python's gives int64 or float64, where TensorFlow has int32 and
        float32. Arrays are copied once, unless np.load(…, mmap_mode="r") has mapped them from a .npy file.
        """
        return _from_arrays("from_tensor_slices", tensors, name)

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: Optional[bool] = None, seed: Optional[int] = None, name: Optional[str] = None
    ) -> Dataset:
        """The paths of files, one string each.

        Args:
          file_pattern: a path, a glob, or a list of them.
          shuffle: whether they come in a random order, the default, or in the byte order of the names.
        """
        from penstock import _readers

        shuffle = True if shuffle is None else bool(shuffle)
        seeds = [("seed", Seed(_optional(seed, "seed")))] if shuffle else [("shuffle", False)]
        return Dataset([Stage("list_files", [("files", _readers.files_of(file_pattern)), *seeds], name)], None)

    @staticmethod
    def from_generator(*args: Any, **kwargs: Any) -> Dataset:
        """Refused: a Python generator cannot run in the daemon."""
        raise _errors.UnimplementedError(
            "from_generator would run Python in the data path; write what the generator yields once, with "
            "`penstock write OUT.tfrecord --jsonl FILE` (a JSON object a line), and read it with TFRecordDataset"
        )

    # --- order ---

    def shuffle(
        self,
        buffer_size: int,
        seed: Optional[int] = None,
        reshuffle_each_iteration: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Draws each element from a buffer of `buffer_size` waiting ones.

        Args:
          buffer_size: at least 1.
          seed: int64, of the first pass; the following ones have seeds that are derived from it. Without
            one the order differs from process to process.
          reshuffle_each_iteration: whether each pass and each epoch of `repeat` has another order. Default
            True.
        """
        return self._then(
            "shuffle",
            [("buffer_size", _integer(buffer_size, "buffer_size")), *_seed_fields(seed, reshuffle_each_iteration)],
            cardinality=self._count,
            name=name,
        )

    def global_shuffle(
        self,
        seed: Optional[int] = None,
        reshuffle_each_iteration: Optional[bool] = None,
        block_size: Optional[int] = None,
        buffer_size: Optional[int] = None,
        read_first: bool = False,
        name: Optional[str] = None,
    ) -> Dataset:
        """Permutes all records of TFRecord files, which are not compressed; directly behind them.

        No buffer and no time to fill one. Builds the files' index where it is missing. `block_size` and `read_first` are for files
        that are not in the page cache.

        Args:
          block_size: blocks of so many consecutive records are permuted, and then the records of as many
            blocks as hold `buffer_size` of them among each other: the disk reads whole blocks, ahead.
          buffer_size: at least block_size, and only with it.
          read_first: the files are read once from beginning to end before the first record is taken.
        """
        fields = [*_seed_fields(seed, reshuffle_each_iteration), ("global", True)]
        if block_size is not None:
            fields.append(("block_size", _integer(block_size, "block_size")))
        if buffer_size is not None:
            fields.append(("buffer_size", _integer(buffer_size, "buffer_size")))
        if read_first:
            fields.append(("read_first", True))
        return self._then("shuffle", fields, cardinality=self._count, name=name)

    def repeat(self, count: Optional[int] = None, name: Optional[str] = None) -> Dataset:
        """Repeats the elements `count` times; None or -1: without end."""
        count = _optional(count, "count")
        cardinality = _cardinality.of_repeat(self._count, -1 if count is None else count)
        return self._then("repeat", [("count", count)], cardinality=cardinality, name=name)

    def take(self, count: int, name: Optional[str] = None) -> Dataset:
        """The first `count` elements; -1: all."""
        count = _integer(count, "count")
        return self._then("take", [("count", count)], cardinality=_cardinality.of_take(self._count, count), name=name)

    def skip(self, count: int, name: Optional[str] = None) -> Dataset:
        """All but the first `count` elements; -1: none."""
        count = _integer(count, "count")
        return self._then("skip", [("count", count)], cardinality=_cardinality.of_skip(self._count, count), name=name)

    def shard(self, num_shards: int, index: int, name: Optional[str] = None) -> Dataset:
        """Every num_shards-th element, from number `index` on."""
        num_shards, index = _integer(num_shards, "num_shards"), _integer(index, "index")
        if not 0 <= index < num_shards:
            raise ValueError(f"index is from 0 to num_shards - 1: {index} of {num_shards}")
        return self._then(
            "shard",
            [("num_shards", num_shards), ("index", index)],
            cardinality=_cardinality.of_shard(self._count, num_shards, index),
            name=name,
        )

    def enumerate(self, start: int = 0, name: Optional[str] = None) -> Dataset:
        """Pairs (number, element); the numbers are int64 and begin with `start` in each pass."""
        return self._then(
            "enumerate",
            [("start", _integer(start, "start") or None)],
            structure=(None, self._structure),
            cardinality=self._count,
            name=name,
        )

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: Optional[str] = None) -> Dataset:
        """Tuples of the elements of several datasets, until the shortest ends.

        Args:
          *args: datasets, or one nest of dicts and tuples of them, whose structure the elements take.
        """
        nest = datasets if datasets is not None else args[0] if len(args) == 1 else args
        nest = tuple(nest) if isinstance(nest, list) else nest
        structure, inputs = _structure.flatten(nest, lambda value: isinstance(value, Dataset), "the argument of zip")
        if len(inputs) == 1:
            if structure is None:
                return inputs[0]
            is_tuple = isinstance(inputs[0]._structure, tuple)
            return inputs[0].map(lambda *parts: _structure.fill(structure, iter([parts if is_tuple else parts[0]])))
        stage = Stage("zip", [("input", [Nested(dataset._stages) for dataset in inputs[1:]])], name)
        zipped = Dataset(
            [*inputs[0]._stages, stage],
            tuple(dataset._structure for dataset in inputs),
            _cardinality.of_zip([dataset._count for dataset in inputs]),
            _merged_options(inputs),
            next((dataset._window for dataset in inputs if dataset._window), None),
        )
        if structure == (None,) * len(inputs):
            return zipped
        return zipped.map(lambda *elements: _structure.fill(structure, iter(elements)))

    def concatenate(self, dataset: Dataset, name: Optional[str] = None) -> Dataset:
        """The elements of this dataset, then those of `dataset`, which are of the same types."""
        if not isinstance(dataset, Dataset):
            raise TypeError(f"concatenate takes a Dataset, not {type(dataset).__name__}")
        if self._structure != dataset._structure:
            raise TypeError(
                f"the elements of concatenated datasets have one structure: {_shown(self._structure)} and "
                f"{_shown(dataset._structure)}"
            )
        joined = self._then(
            "concatenate",
            [("input", [Nested(dataset._stages)])],
            cardinality=_cardinality.of_concatenate(self._count, dataset._count),
            name=name,
        )
        joined._options = self._options.merge(dataset._options)
        return joined

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
        fields = _batch_fields(batch_size, drop_remainder, remainder)
        count = _batched(self._count, batch_size, drop_remainder, remainder)
        return self._then("batch", fields, cardinality=count, name=name)

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
        from penstock import _padding

        fields = [
            *_batch_fields(batch_size, drop_remainder, remainder),
            ("padded_shape", _padding.shapes(self._structure, padded_shapes)),
            ("padding_value", _padding.values(self._structure, padding_values)),
        ]
        count = _batched(self._count, batch_size, drop_remainder, remainder)
        return self._then("padded_batch", fields, cardinality=count, name=name)

    def ragged_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: Any = np.int64,
        name: Optional[str] = None,
        *,
        remainder: Optional[str] = None,
    ) -> Dataset:
        """Joins elements whose shapes may differ: such tensors become penstock.RaggedTensor."""
        if _dtypes.as_dtype(row_splits_dtype) != np.int64:
            raise ValueError(f"row splits are int64, not {row_splits_dtype}")
        fields = _batch_fields(batch_size, drop_remainder, remainder)
        count = _batched(self._count, batch_size, drop_remainder, remainder)
        return self._then("ragged_batch", fields, cardinality=count, name=name)

    def sparse_batch(self, batch_size: int, row_shape: Any, name: Optional[str] = None) -> Dataset:
        """Joins elements, each a lone dense tensor, to penstock.SparseTensors that hold all their values.

        Args:
          row_shape: of the dense rows, in which each element has room; None and -1 mean the largest of the batch.
        """
        shape = [-1 if size is None else _integer(size, "a size of row_shape") for size in row_shape]
        fields = [("batch_size", _integer(batch_size, "batch_size")), ("row_shape", shape)]
        return self._then("sparse_batch", fields, cardinality=_batched(self._count, batch_size, False, None), name=name)

    def prefetch(self, buffer_size: int, name: Optional[str] = None) -> Dataset:
        """At the end: the number of elements that are held ready. Elsewhere, and with AUTOTUNE, no effect."""
        size = _integer(buffer_size, "buffer_size")
        if size < 1:
            return self
        return self._then("prefetch", [("buffer_size", size)], cardinality=self._count, name=name)

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: Optional[str] = None) -> Dataset:
        """Joins the rows of batches anew, as unbatch().batch(batch_size).

        Args:
          batch_size: one number, or several that are taken by turns.
        """
        sizes = [_integer(size, "batch_size") for size in np.atleast_1d(np.asarray(batch_size)).tolist()]
        if not sizes or min(sizes) < 1:
            raise ValueError(f"batch_size is at least 1: {batch_size}")
        fields = [("batch_size", sizes), ("drop_remainder", True if drop_remainder else None)]
        return self._then("rebatch", fields, name=name)

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
        from penstock import _windows

        shift = _optional(shift, "shift")
        fields = [
            ("size", _integer(size, "size")),
            ("shift", shift),
            ("stride", _integer(stride, "stride")),
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
        from penstock import _grouping

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
        from penstock import _grouping

        return _grouping.group(self, key_func, reduce_func, window_size, window_size_func, name)

    # --- work ---

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Optional[int] = None,
        deterministic: Optional[bool] = None,
        synchronous: Optional[bool] = None,
        use_unbounded_threadpool: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Computes new elements from each element.

        `map_func` is called once, now, with stand-ins for the tensors; what it does to them with operators,
        NumPy's functions, penstock.image and penstock.io becomes a native program. docs/python.md says
        what can be traced.

        Args:
          map_func: gets the element, or the parts of a tuple as several arguments; returns the new one:
            tensors and constants in a nest of dicts and tuples.

        Raises:
          TraceError: `map_func` does something that has no native form; it names the line.
        """
        line = user_line()

        def use(dataset, trace, result):
            stages, structure = _program.build(trace, result, dataset._structure, name, line)
            return dataset._like((*dataset._stages, *stages), structure, dataset._count)

        return self._traced(map_func, use)

    def parse_example(
        self,
        features: Dict[str, Any],
        num_parallel_calls: Optional[int] = None,
        deterministic: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Parses each element, a serialized tf.train.Example, into a dict.

        Args:
          features: a dict from keys to penstock.io.FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, SparseFeature and
            RaggedFeature. Behind `batch` each row is parsed, as tf.io.parse_example does.
        """
        from penstock import io

        stage = io.example_stage(features, name)
        structure = {key: None for key in features}
        return self._like((*self._stages, stage), structure, self._count)

    # --- datasets of files ---

    def interleave(
        self,
        map_func: Callable[..., Dataset],
        cycle_length: Optional[int] = None,
        block_length: Optional[int] = None,
        num_parallel_calls: Optional[int] = None,
        deterministic: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """The elements of datasets that are each made of one element, in turns.

        `paths.interleave(penstock.TFRecordDataset)` reads files in turns; `rows.interleave(Dataset.from_tensor_slices)` takes slices
        of several elements in turns.

        Args:
          map_func: called once, with stand-ins for the element. It returns a dataset: of a reader of the path that it gets, as
            lambda path: penstock.TFRecordDataset(path).map(...); of the element's values, by Dataset.from_tensors, from_tensor_slices
            or range; or of nothing of it. Functions given to that dataset's map, filter and take_while may use the element too.
          cycle_length: datasets at a time; 16 by default, and with AUTOTUNE. At most 64 where values make them.
          block_length: elements of each before the turn passes on; 1 by default.
        """
        cycle_length = _optional(cycle_length, "cycle_length")
        length = 16 if cycle_length in (None, AUTOTUNE) else cycle_length
        turns = [("cycle_length", length), ("block_length", _optional(block_length, "block_length"))]
        return self._nest("interleave", map_func, turns, name)

    def flat_map(self, map_func: Callable[..., Dataset], name: Optional[str] = None) -> Dataset:
        """The elements of datasets that are each made of one element, one dataset after another.

        Args:
          map_func: as interleave's.
        """
        return self._nest("flat_map", map_func, [], name)

    # --- where values decide the order ---

    def filter(self, predicate: Callable[..., Any], name: Optional[str] = None) -> Dataset:
        """The elements for which `predicate`, traced as in map, is true."""
        return self._where("filter", predicate, name)

    def take_while(self, predicate: Callable[..., Any], name: Optional[str] = None) -> Dataset:
        """The elements before the first for which `predicate`, traced as in map, is false."""
        return self._where("take_while", predicate, name)

    def unbatch(self, name: Optional[str] = None) -> Dataset:
        """An element of each row of the tensors' first axis, which all of them have in common."""
        return self._then("unbatch", [], name=name)

    def ignore_errors(
        self,
        log_warning: bool = False,
        name: Optional[str] = None,
        *,
        max_skipped: Optional[int] = None,
        max_skipped_fraction: Optional[float] = None,
    ) -> Dataset:
        """Leaves out elements on which a stage before this one fails; `penstock skipped` lists them.

        Args:
          max_skipped: more of them in a pass are an error.
          max_skipped_fraction: a larger part of all elements is an error.
        """
        fields = [
            ("max_skipped", _optional(max_skipped, "max_skipped")),
            ("max_skipped_fraction", None if max_skipped_fraction is None else float(max_skipped_fraction)),
        ]
        return self._then("ignore_errors", fields, name=name)

    def unique(self, name: Optional[str] = None) -> Dataset:
        """The first of equal elements, which are one tensor of int32, int64 or strings."""
        return self._then("unique", [], name=name)

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: Optional[int] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Leaves out elements at random so that classes become as frequent as they should be: pairs (class, element).

        Args:
          class_func: traced as in map; returns an integer from 0 to the number of classes - 1.
          target_dist: how frequent each class is to be.
          initial_dist: how frequent each is; by default as frequent as it has been so far.
          seed: as shuffle.
        """
        line = user_line()
        trace, result = self._call(class_func)
        more = [
            ("target_dist", [float(value) for value in np.asarray(target_dist).ravel()]),
            ("initial_dist", None if initial_dist is None else [float(value) for value in np.asarray(initial_dist).ravel()]),
            ("seed", Seed(_optional(seed, "seed"))),
        ]
        stage = _program.condition_stage("rejection_resample", trace, result, name, line, "class_func", "integer", more)
        return self._like((*self._stages, stage), (None, self._structure))

    # --- states ---

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], Any], name: Optional[str] = None) -> Dataset:
        """Computes new elements from each element and a state, which it renews.

        Args:
          initial_state: a nest of numbers, strings and arrays.
          scan_func: traced as in map; gets the state and the element, and returns the new state, of the same types, and
            the new element.
        """
        from penstock import _state

        return _state.scan(self, initial_state, scan_func, name)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any], name: Optional[str] = None) -> Any:
        """The state behind the last element: runs the dataset.

        Args:
          initial_state: a nest of numbers, strings and arrays.
          reduce_func: traced as in map; gets the state and an element, and returns the new state.

        Returns:
          The state as NumPy arrays. Of a window, inside of a function given to `window(…).map`: a stand-in for it.
        """
        from penstock import _state

        return _state.reduce(self, initial_state, reduce_func, name)

    def cache(self, filename: str = "", name: Optional[str] = None, *, max_bytes: Optional[int] = None) -> Dataset:
        """Keeps the elements when they are first computed: in memory, or in a file for later runs too.

        Elements before it are those of the first pass in every epoch. In memory, each `for` begins with an empty cache,
        which serves the epochs of a `repeat` behind it.

        Args:
          filename: a folder, made if it is missing. The first pass through all elements writes a file there, which any
            dataset of the same stages and files takes its elements from: give shuffles and random functions before it a seed.
          max_bytes: elements beyond are computed in every pass, and what is kept stays. A quarter of the machine's
            memory by default; in a file as many as the disk takes.
        """
        fields = [("max_bytes", _optional(max_bytes, "max_bytes"))]
        if not filename:
            return self._then("cache", fields, cardinality=self._count, name=name)
        kept = self._like(of_first_pass(self._stages), self._known_structure, self._count)
        return kept._then("cache", [("filename", _folder(filename)), *fields], cardinality=self._count, name=name)

    def snapshot(
        self,
        path: str,
        compression: str = "AUTO",
        reader_func: Optional[Callable] = None,
        shard_func: Optional[Callable] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Keeps the elements in the folder `path`, as cache(path) does: in one order, whoever reads them.

        Args:
          compression: "AUTO" or "NONE"; files are not compressed.
          reader_func, shard_func: refused; there is one file.
        """
        if compression not in ("AUTO", "NONE", None):
            raise _errors.UnimplementedError(f"a compressed snapshot is not built: {compression!r}; give 'NONE'")
        _no_functions("snapshot", reader_func=reader_func, shard_func=shard_func)
        kept = self._like(of_first_pass(self._stages), self._known_structure, self._count)
        return kept._then("snapshot", [("path", _folder(path))], cardinality=self._count, name=name)

    def save(
        self,
        path: str,
        compression: Optional[str] = None,
        shard_func: Optional[Callable] = None,
        checkpoint_args: Any = None,
    ) -> None:
        """Runs the dataset once and writes its elements into the folder `path`, for Dataset.load.

        What was there is replaced when the last element is durable. The format is Penstock's own.

        Args:
          compression: None or "NONE"; files are not compressed.
          shard_func, checkpoint_args: refused; there is one file, and it is whole or absent.
        """
        if compression not in ("NONE", None):
            raise _errors.UnimplementedError(f"saving compressed is not built: {compression!r}; give None")
        _no_functions("save", shard_func=shard_func, checkpoint_args=checkpoint_args)
        for _ in self._then("save", [("path", _folder(path))]).skip(-1):
            pass

    @staticmethod
    def load(
        path: str,
        element_spec: Any = None,
        compression: Optional[str] = None,
        reader_func: Optional[Callable] = None,
        wait: bool = False,
    ) -> Dataset:
        """The elements that save(path) has written, in their order; global_shuffle() behind it permutes all of them.

        Args:
          element_spec: ignored; the file knows.
          reader_func, wait: refused; there is one file, which is whole or absent.
        """
        if compression not in ("NONE", None):
            raise _errors.UnimplementedError(f"loading compressed is not built: {compression!r}; give None")
        _no_functions("load", reader_func=reader_func, wait=wait)
        folder = _folder(path)
        return Dataset([Stage("load", [("path", folder)])], _ASK, _saved_count(folder))

    def get_single_element(self, name: Optional[str] = None) -> Any:
        """The only element: runs the dataset. InvalidArgumentError when there is none, or more than one."""
        if self._window is not None:
            from penstock import _windows

            return _windows.Value(self)
        elements = list(self.take(2))
        if len(elements) != 1:
            raise _errors.InvalidArgumentError(
                f"get_single_element takes a dataset of one element, found {'more' if elements else 'none'}"
            )
        return elements[0]

    # --- the rest of tf.data's interface ---

    def assert_cardinality(self, expected_cardinality: int, name: Optional[str] = None) -> Dataset:
        """States how many elements there are, for len(); others than that are an error when that is seen."""
        count = _integer(expected_cardinality, "expected_cardinality")
        return self._then("assert_cardinality", [("cardinality", count)], cardinality=count, name=name)

    def pad_to_cardinality(self, cardinality: int, mask_key: str = "valid", name: Optional[str] = None) -> Dataset:
        """Adds elements of zeros until there are `cardinality`, and a feature `mask_key` that is true for the others.

        Elements are dicts.
        """
        count = _integer(cardinality, "cardinality")
        if 0 <= count < self._count:
            raise ValueError(f"the dataset has {self._count} elements, more than {count}")
        if not isinstance(self._structure, dict):
            raise ValueError(f"pad_to_cardinality takes elements that are dicts, not {_shown(self._structure)}")
        return self._then(
            "pad_to_cardinality",
            [("cardinality", count), ("mask_key", mask_key)],
            structure={**self._structure, mask_key: None},
            cardinality=count,
            name=name,
        )

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """transformation_func(self), which gives a Dataset."""
        dataset = transformation_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError(f"transformation_func gives a Dataset, not {type(dataset).__name__}")
        return dataset

    def options(self) -> Options:
        """A penstock.Options."""
        return self._options

    def with_options(self, options: Any, name: Optional[str] = None) -> Dataset:
        """Accepts penstock.Options; those of TensorFlow have no effect."""
        if not isinstance(options, Options):
            options = Options()
        return Dataset(self._stages, self._known_structure, self._count, self._options.merge(options), self._window)

    def cardinality(self) -> int:
        """The number of elements, or penstock.INFINITE_CARDINALITY, or penstock.UNKNOWN_CARDINALITY."""
        return self._count

    def __len__(self) -> int:
        if self._count == INFINITE:
            raise TypeError("the dataset is infinite")
        if self._count == UNKNOWN:
            raise TypeError("the dataset's length is unknown: its files would have to be read")
        return self._count

    def __bool__(self):
        return True

    @property
    def element_spec(self) -> Any:
        """The element's structure with a TensorSpec for each tensor. Asks the daemon."""
        pipeline = self._describe()
        return _structure.fill(_structure.from_json(pipeline["structure"]), iter(_specs(pipeline)))

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self)

    def as_numpy_iterator(self) -> DatasetIterator:
        """The same as iter(dataset)."""
        return iter(self)

    def loader(
        self,
        socket: Optional[str] = None,
        name: Optional[str] = None,
        group: str = "default",
        timeout: Optional[float] = None,
    ) -> DatasetIterator:
        """Runs the dataset in a daemon that other processes use too.

        Args:
          socket: the daemon's; by default the one of penstock.default_socket().
          name: the pipeline's there, which stays until `penstock delete NAME`; other processes read it with
            penstock.attach(name). Without one it is deleted with the iterator.
          group, timeout: as penstock.attach.

        Returns:
          A DatasetIterator, whose seeds are the dataset's own in every pass.

        Raises:
          AlreadyExistsError: on the first element, when there is a pipeline of that name.
        """
        from penstock import _core

        return DatasetIterator(self, socket or _core.default_socket(), name, group, timeout, first_pass=True)

    def spec_text(self, name: Optional[str] = None) -> str:
        """The pipeline as the text of a PipelineSpec, for `penstock create` and `penstock run`."""
        return Spec(self._stages, name, self._options.workers).text

    to_textproto = spec_text

    def save_spec(self, path: Union[str, os.PathLike], name: Optional[str] = None) -> None:
        """Writes spec_text to a file; the pipeline's name is by default that of the file."""
        if name is None:
            name = os.path.basename(os.fspath(path)).partition(".")[0]
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.spec_text(name))

    def explain(self) -> str:
        """What the daemon makes of it: stages, fused programs and memory, in words."""
        spec = Spec(self._stages, None, self._options.workers)
        return _validate(spec)[1]

    def __repr__(self):
        stages = " | ".join(stage.name or stage.op for stage in self._stages)
        structure = "" if self._known_structure is _ASK else f", elements {_shown(self._known_structure)}"
        return f"<{type(self).__name__} {stages}{structure}>"

    # --- what others of this package use ---

    def _call(self, function):
        """A trace and what `function` returns for its element, whose parts it gets if that is a tuple."""
        trace = _trace.Trace(self)
        return trace, _apply(trace, function, trace.tensors_of(self._structure))

    def _traced(self, function, use, call=_apply):
        """What `use` makes of a dataset, the trace of `function` over its elements and what that returned.

        The dataset is this one; or, where `function` uses the element of a call around it, that of pairs with that element.
        """
        trace = _trace.Trace(self)
        try:
            return use(self, trace, call(trace, function, trace.tensors_of(self._structure)))
        except _trace.Captured as captured:
            from penstock import _nested

            found = _nested.with_element(self, captured.traces)
            if found is None:
                raise
        pairs, around = found
        trace = _trace.Trace(pairs)
        trace.adopt(around)
        return use(pairs, trace, call(trace, function, trace.tensors_of(pairs._structure)[0]))

    def _nest(self, op, function, fields, name):
        from penstock import _nested

        line = user_line()

        def use(dataset, trace, inside):
            if not isinstance(inside, Dataset):
                raise _trace.TraceError(
                    f"the function given to {op} returned a {type(inside).__name__}",
                    "it returns a Dataset: one that reads the path, or one of the element's values (Dataset.from_tensors, from_tensor_slices)",
                )
            known = inside._known_structure
            flattened = _nested.flattened(op, inside._stages, name)
            if flattened is not None:
                return dataset._like((*dataset._stages, *flattened), known)
            stages = _nested.as_paths(dataset._stages) if _nested.reads_path(inside._stages) else dataset._stages
            return dataset._like((*stages, _nested.stage(op, inside._stages, fields, name, line)), known)

        return self._traced(function, use, _nested.call)

    def _where(self, op, predicate, name):
        line = user_line()

        def use(dataset, trace, result):
            stage = _program.condition_stage(op, trace, result, name, line)
            kept = dataset._like((*dataset._stages, stage), dataset._known_structure)
            return kept if dataset is self else kept.map(lambda element, _: element)

        return self._traced(predicate, use)

    @property
    def _structure(self):
        if self._known_structure is _ASK:
            self._known_structure = _structure.from_json(self._describe()["structure"])
        return self._known_structure

    def _describe(self):
        if self._described is None:
            self._described = _validate(Spec(self._whole(self._stages), None, self._options.workers))[0]
        return self._described

    def _type_of(self, trace, node):
        """The TensorSpec of a value inside a function given to map."""
        stages = (*self._stages, *_program.type_stages(trace, node, user_line()))
        try:
            pipeline, _ = _validate(Spec(self._whole(stages)))
        except _errors.InvalidArgumentError as error:
            raise _trace.TraceError(
                f"the type of this value is not known while tracing ({error})", "use functions that need none"
            ) from None
        return _specs(pipeline)[0]


def _batch_fields(batch_size, drop_remainder, remainder):
    size = _integer(batch_size, "batch_size")
    if size < 1:
        raise ValueError(f"batch_size is at least 1: {size}")
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


def _seed_fields(seed, reshuffle):
    reshuffle = True if reshuffle is None else bool(reshuffle)
    return [
        ("seed", Seed(_optional(seed, "seed"), reshuffle)),
        ("reshuffle_each_iteration", None if reshuffle else False),
    ]


def _draws(seed, rerandomize):
    """The fields of an op whose passes draw alike, unless it is told otherwise."""
    return [
        ("seed", Seed(_optional(seed, "seed"), bool(rerandomize))),
        ("rerandomize_each_iteration", True if rerandomize else None),
    ]


def _from_arrays(op, tensors, name):
    from penstock import _arrays, _nested

    traced = _nested.of_traced(op, tensors, name)
    if traced is not None:
        return traced
    if isinstance(tensors, list):
        # TensorFlow makes one tensor of a list.
        tensors = np.array(tensors, object) if tensors and isinstance(tensors[0], (str, bytes)) else np.asarray(tensors)
    structure, values = _structure.flatten(tensors, lambda value: not isinstance(value, (dict, tuple)), f"{op}'s argument")
    paths = _structure.paths(structure)
    messages, arrays = [], []
    for path, value in zip(paths, values):
        message, array = _arrays.tensor_values(None if structure is None else path, value, f"{op}: {path}")
        messages.append(message)
        arrays.append(array)
    count = 1
    if op == "from_tensor_slices":
        sizes = {array.shape[0] if array.ndim else None for array in arrays}
        if len(sizes) != 1 or None in sizes:
            shapes = ", ".join(f"{path} {array.shape}" for path, array in zip(paths, arrays))
            raise ValueError(f"from_tensor_slices takes tensors whose first axes have one size: {shapes}")
        count = sizes.pop()
    is_flat = structure is None or isinstance(structure, dict) and all(inner is None for inner in structure.values())
    given = structure if is_flat else {path: None for path in paths}
    dataset = Dataset([Stage(op, [("tensor", messages)], name)], given, count)
    return dataset if is_flat else dataset.map(lambda e: _structure.fill(structure, iter(e.values())))


def _merged_options(datasets):
    merged = Options()
    for dataset in datasets:
        merged = merged.merge(dataset._options)
    return merged


def _shown(structure):
    if structure is None:
        return "a tensor"
    if isinstance(structure, tuple):
        return f"({', '.join(map(_shown, structure))}{',' if len(structure) == 1 else ''})"
    return "{" + ", ".join(key if inner is None else f"{key}: {_shown(inner)}" for key, inner in structure.items()) + "}"


def _validate(spec):
    try:
        return _daemon.with_private_daemon(lambda socket: _control.validate(socket, "check", spec.text))
    except _errors.Error as error:
        raise type(error)(spec.explain(str(error))) from None


def _specs(pipeline):
    """A TensorSpec for each tensor, in order."""
    return [
        TensorSpec(
            (None if int(size) < 0 else int(size) for size in tensor["shape"]),
            _dtypes.from_control(tensor["dtype"]),
            tensor["name"],
            tensor["kind"][len("TENSOR_KIND_") :].lower(),
        )
        for tensor in pipeline["element"]
    ]
