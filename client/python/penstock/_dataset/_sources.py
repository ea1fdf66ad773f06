"""Datasets of numbers, arrays, paths and of other datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional

import numpy as np

from penstock import _dtypes, _structure
from penstock._dataset import _cardinality, _nested
from penstock._dataset._arguments import draws, integer, optional
from penstock._dataset._cardinality import INFINITE
from penstock._dataset._chain import of_stages
from penstock._dataset._paths import MAX_BYTES, MAX_ELEMENTS, files_of
from penstock._spec._stage import Seed, Stage, Trait, declare
from penstock._tracing import _trace

if TYPE_CHECKING:
    from penstock._dataset import Dataset

for _op in ("from_tensors", "range", "counter", "random"):
    declare(_op, Trait.GIVES_NO_PATHS)


class Sources:
    """Static methods of Dataset that make one."""

    @staticmethod
    def range(*args: int, output_type: Any = np.int64, name: Optional[str] = None) -> Dataset:
        """range(stop), range(start, stop[, step]): one int64 each, of shape ().

        Args:
          output_type: another type of the numbers. A type of integers holds all of them.
        """
        if not 1 <= len(args) <= 3:
            raise TypeError(f"range takes 1 to 3 integers, not {len(args)}")
        if _trace.find_trace(args) is not None:
            return _nested.range_of_traced(args, output_type, name)
        numbers = [integer(value, "an argument of range") for value in args]
        start, stop = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
        step = numbers[2] if len(numbers) == 3 else 1
        if step == 0:
            raise ValueError("range's step is not 0")
        output_type = _dtypes.as_dtype(output_type)
        if output_type is not _dtypes.string and output_type.kind in "iu":
            numbers, bounds = range(start, stop, step), np.iinfo(output_type)
            # They go one way: the first and the last one tell of all.
            for number in (*numbers[:1], *numbers[-1:]):
                if not bounds.min <= number <= bounds.max:
                    raise ValueError(f"range has {number}, which {output_type} does not hold")
        fields = [("start", start or None), ("stop", stop), ("step", None if step == 1 else step)]
        dataset = of_stages([Stage("range", fields, name)], None, _cardinality.of_range(start, stop, step))
        return dataset if output_type == np.int64 else dataset.map(lambda x: x.astype(output_type))

    @staticmethod
    def counter(start: int = 0, step: int = 1, dtype: Any = np.int64, name: Optional[str] = None) -> Dataset:
        """start, start + step, … without end: one number each, of shape ()."""
        fields = [("start", integer(start, "start") or None), ("step", integer(step, "step"))]
        dataset = of_stages([Stage("counter", fields, name)], None, INFINITE)
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
        fields = draws(seed, rerandomize_each_iteration)
        return of_stages([Stage("random", fields, name)], None, INFINITE)

    @staticmethod
    def sample_from_datasets(
        datasets: Any,
        weights: Any = None,
        seed: Optional[int] = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: Optional[bool] = None,
        *,
        temperature: Optional[float] = None,
    ) -> Dataset:
        """Draws each element from one of the datasets, whose elements are of the same types.

        Args:
          weights: one number for each dataset, in any unit, by default all alike; or a dataset whose elements are such weights of shape
            (datasets,), one for each draw: it ends this one, too.
          seed, rerandomize_each_iteration: as random.
          stop_on_empty_dataset: whether drawing a dataset that has no more elements ends this one. By default it
            is left out from then on. `repeat(n)` of a dataset limits how often it is gone through, and `repeat()` goes through it without end.
          temperature: above 0; each weight becomes weight ** (1 / temperature). Above 1, what has a small weight is drawn more often than that,
            below 1 less often. Where it is given without weights, these are the numbers of the datasets' elements, which are known then.
        """
        from penstock._dataset import _choosing

        return _choosing.sample(datasets, weights, seed, rerandomize_each_iteration, stop_on_empty_dataset, temperature)

    @staticmethod
    def choose_from_datasets(datasets: Any, choice_dataset: Dataset, stop_on_empty_dataset: bool = True) -> Dataset:
        """Takes each element from the dataset whose number the next element of choice_dataset is.

        Args:
          choice_dataset: int64 of shape (), from 0 to the number of datasets - 1.
          stop_on_empty_dataset: whether choosing a dataset that has no more elements ends this one; otherwise the choice
            is passed over.
        """
        from penstock._dataset import _choosing

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
    def from_python(source: Any, output: Any = None, **options: Any) -> Dataset:
        """The elements of an object that has __len__ and __getitem__: a torch Dataset, a Grain source, a datasets.Dataset, a list, a memmap.

        Worker processes hold the object, its arrays in memory once for all of them, and index it. Shuffles, shard, take, skip and repeat directly behind it are
        done to the indices; global_shuffle permutes them all.

        Args:
          source: is pickled at once (by cloudpickle, where that is needed). Elements are tensors in nests of dicts, tuples, named tuples, dataclasses and lists, and come back as
            such nests; to traced functions they are dicts and tuples. A list of Python's numbers or texts is one tensor, of any length.
          output: a nest of penstock.TensorSpec, of dicts and tuples. By default it is learned of the first, the middle and the last element, which a copy of
            the object is asked for in this process; axes whose sizes differ between those are open.
          **options: of Dataset.map with python=True: version, timeout_ms, workers, max_rows_per_worker, threads, seed, seeds, name.

        Raises:
          TypeError: it has no length, or cannot be indexed or pickled; or an element holds something of which no tensor is made.
          ValueError: it is empty, and `output` does not say what its elements would be.
        """
        from penstock._dataset import _indexed

        return _indexed.from_python(source, output, options, Sources.range)

    @staticmethod
    def from_huggingface(dataset: Any, columns: Any = None, defaults: Any = None, **options: Any) -> Dataset:
        """The rows of a datasets.Dataset: read in place out of its Arrow files where that can be done, else by from_python, with a warning that says why.

        In place: the dataset's files are mapped, as load_dataset, load_from_disk and save_to_disk keep them; select, shuffle, shard, train_test_split, sort,
        remove_columns, rename_column and concatenate_datasets are followed by the row numbers and columns that they leave behind. A dataset in memory, one with a
        transform (set_transform), and columns that were added or cast in memory go by from_python, which hands out elements as the dataset itself does. Row numbers
        that are in memory, more than 100,000 of them, are written into a file beside the dataset's own (penstock-rows-FINGERPRINT.arrow), which stays.

        Elements are dicts of the dataset's columns, or of those of its format. Text and bytes are penstock.string; ClassLabel and Value are numbers of their dtype;
        dates and times are the numbers that are stored. A list has an axis of any size, or of the declared length; Array2D to Array5D have their shapes. Fields of
        dicts are named as Dataset.flatten() names them. Image, Audio and the like are not decoded: "image.bytes", for penstock.image.decode_image, and "image.path",
        "" where there is none.

        Args:
          dataset: a datasets.Dataset; of a DatasetDict take a split.
          columns: a list of the dataset's columns; by default all of them.
          defaults: what takes the place of a null, by the features' names ("image.path"); [] for a list of any size. A null without one is an error of its row.
          **options: of from_python, where that is needed.

        Raises:
          TypeError: it is no datasets.Dataset.
          ValueError: a column or default is of none of its columns.
        """
        from penstock._dataset import _huggingface

        return _huggingface.from_huggingface(dataset, columns, defaults, options, Sources.from_python)

    @staticmethod
    def parquet(
        paths: Any,
        columns: Any = None,
        filters: Any = None,
        *,
        defaults: Optional[Mapping[str, Any]] = None,
        decimals: str = "float64",
        filesystem: Any = None,
        num_shards: Optional[int] = None,
        shard_index: Optional[int] = None,
        reader: str = "auto",
        name: Optional[str] = None,
        **options: Any,
    ) -> Dataset:
        """The rows of Parquet files, a dict of the columns each (docs/howto/parquet.md). Not in tf.data.

        The daemon decodes files of the common subset by itself: columns that are not nested, of numbers, flags, times and strings, by the usual encodings and
        codecs. Of others, and behind `global_shuffle`, worker processes decode row groups by the package pyarrow, and hand them over as whole columns. repr()
        tells which of the two it is, and why. A resume decodes the row group that it was in, and no other. `global_shuffle` directly behind permutes the row groups, and the rows of some of them among each other. The length is exact; where rows have
        to be looked at for `filters`, nobody knows it before a pass.

        Args:
          paths: a path, a glob, or a list of them; or addresses ("s3://…", "gs://…"), or paths of `filesystem`. Files come in the order of the list, those of
            one glob in the byte order of their names.
          columns: names, in the order of the dict; by default all.
          filters: [(column, op, value), …], all of which hold, or a list of such lists, one of which holds; ops are =, !=, <, >, <=, >=, in, not in. Row groups
            are left out by their statistics, and of the others the rows that do not meet it. Null meets nothing.
          defaults: what stands for null, from columns to values: of lists for a null item, and a null list is empty; of structs a dict. A null of another
            column is an error of its row group.
          decimals: "float64", the nearest where the unscaled number is at most 2^53, else within rounding; or "int64", the unscaled number.
          filesystem: of pyarrow or fsspec, which the paths are of.
          num_shards, shard_index: every num_shards-th row group of those that `filters` leaves, from number shard_index on.
          reader: "auto"; "pyarrow" for worker processes in any case, as before; "daemon" for an error where the daemon does not read the files by itself.
          **options: of worker processes, which read the files then: version, timeout_ms (of a row group), workers, max_rows_per_worker and threads, as of Dataset.map.

        Numbers and flags keep their types, times are integers of their unit, strings and binaries are strings. A list of numbers is an array of any size,
        one of a fixed size an array of a fixed shape; a list of lists is a dict of values and row_splits, a struct a dict, and a list of structs a dict of lists.

        Raises:
          ImportError: pyarrow is not installed.
          NotFoundError: there is no such file.
          DataLossError: a file is no Parquet file, or is cut; or files have different columns.
          TypeError: no tensor is made of a column.
        """
        from penstock._dataset import _parquet

        return _parquet.parquet(
            paths, columns, filters, defaults, decimals, filesystem, num_shards, shard_index, reader, name, options, Sources.range
        )  # fmt: skip

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: Optional[bool] = None, seed: Optional[int] = None, name: Optional[str] = None
    ) -> Dataset:
        """The paths of files, one string each.

        Args:
          file_pattern: a path, a glob, or a list of them. The paths of a relative one are absolute; TensorFlow keeps them relative.
          shuffle: whether they come in a random order, the default, or in the byte order of the names.
        """
        shuffle = True if shuffle is None else bool(shuffle)
        seed = optional(seed, "seed")
        seeds = [("seed", Seed(seed))] if shuffle else [("shuffle", False)]
        return of_stages([Stage("list_files", [("files", files_of(file_pattern)), *seeds], name)], None)

    @staticmethod
    def from_generator(
        generator: Any,
        output_types: Any = None,
        output_shapes: Any = None,
        args: Any = None,
        output_signature: Any = None,
        name: Optional[str] = None,
        *,
        num_shards: Optional[int] = None,
        **options: Any,
    ) -> Dataset:
        """The elements of a Python iterable, which a worker process goes through (docs/python.md, "Generators").

        A resume goes on at a state of the iterator, where it or the iterable has state_dict() and load_state_dict(), and the state is made of plain values
        and small; or at a position that the generator has yielded (penstock.At); else it goes through the iterable again from its first element.

        Args:
          generator: a function that returns an iterable, such as a generator function; or an iterable that can be gone through anew. It travels by pickle.
          output_types: a nest of types. Numbers are cast to them as tf.data does. Without it, and without output_signature, the first element tells all.
          output_shapes: a nest of shapes; None where only the data tells a size. What is not said is open, and the first element tells how many axes there are.
          args: arguments of the function, which gets them as NumPy's values.
          output_signature: a nest of penstock.TensorSpecs, in the place of both.
          num_shards: as many processes, whose elements come in turns. Each calls the function with the keywords shard_index and num_shards besides, and
            is to give its part alone.
          **options: version, timeout_ms, threads, seed and seeds, as of Dataset.map.

        Raises:
          TypeError: it is no such thing, or cannot be pickled; or the arguments contradict each other.
        """
        from penstock._dataset import _python_sources

        return _python_sources.from_generator(generator, output_types, output_shapes, args, output_signature, name, num_shards, options)


    @staticmethod
    def from_source(
        source: Any,
        output: Any = None,
        *,
        num_shards: Optional[int] = None,
        block_records: int = 1024,
        block_bytes: int = 256 << 10,
        name: Optional[str] = None,
        **options: Any,
    ) -> Dataset:
        """The records that a penstock.io.Source reads in a worker process (docs/howto/other-sources.md). Not in tf.data.

        A resume goes on at a position that stood beside a record, and is exact; of a source that does not seek it goes through the records again.

        Args:
          source: is pickled at once. What can be asked for any of its elements by a number is better given to from_python: it has a length, and global_shuffle.
          output: a nest of penstock.TensorSpec of what records are. By default they are byte strings.
          num_shards: as many processes, each of which reads source.shard(num_shards, index); their blocks come in turns.
          block_records, block_bytes: records go to the daemon in blocks of at most so many, and of about so many bytes. A resume reads again what was read ahead:
            at most 2,048 blocks, and about 256 MiB. Records of variable size that are no byte strings always go one by one.
          **options: version, timeout_ms (of a block), threads, seed and seeds, as of Dataset.map.

        Raises:
          TypeError: it is no Source, or cannot be pickled.
        """
        from penstock._dataset import _source_processes

        return _source_processes.from_source(source, output, num_shards, block_records, block_bytes, name, options)


def _from_arrays(op, tensors, name):
    from penstock._spec import _arrays

    traced = _nested.of_traced(op, tensors, name)
    if traced is not None:
        return traced
    if isinstance(tensors, list):
        # TensorFlow makes one tensor of a list.
        tensors = _arrays.as_array(tensors, f"{op}'s argument")
    structure, values = _structure.flatten(tensors, lambda value: not isinstance(value, (dict, tuple)), f"{op}'s argument")
    paths = _structure.paths(structure)
    if len(set(paths)) < len(paths):
        twice = next(path for number, path in enumerate(paths) if path in paths[:number])
        raise ValueError(f"{op} takes tensors of different paths; two are {twice!r}")
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
    is_flat = structure is None or isinstance(structure, dict) and all(
        inner is None and key == name for (key, inner), name in zip(structure.items(), paths)
    )
    given = structure if is_flat else {_structure.key_of(path): None for path in paths}
    dataset = of_stages([Stage(op, [("tensor", messages)], name)], given, count)
    dataset = dataset if is_flat else dataset.map(lambda e: _structure.fill(structure, iter(e.values())))
    if op == "from_tensor_slices" and count <= MAX_ELEMENTS and sum(array.nbytes for array in arrays) <= MAX_BYTES:
        dataset._given = structure, arrays
    return dataset
