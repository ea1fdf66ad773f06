"""Which elements come, and in which order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Optional

from penstock import _structure
from penstock._dataset import _cardinality, _nested
from penstock._dataset._arguments import integer, optional
from penstock._dataset._chain import Chain, merged_options, of_stages, shown
from penstock._dataset._element import share_source
from penstock._spec._stage import Nested, Seed, Stage, Trait, declare

if TYPE_CHECKING:
    from penstock._dataset import Dataset


declare("shuffle", Trait.MOVES_PATHS, Trait.BY_PLACE)
declare("shard", Trait.MOVES_PATHS, Trait.BY_PLACE, part="index")
declare("take", Trait.MOVES_PATHS, Trait.BY_PLACE)
declare("skip", Trait.MOVES_PATHS, Trait.BY_PLACE)
declare("repeat", Trait.MOVES_PATHS, Trait.BY_PLACE)
declare("zip", Trait.TAKES_FRONT)
declare("concatenate", Trait.TAKES_FRONT)


class Order:
    """Methods of Dataset that look at no values."""

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
            [("buffer_size", integer(buffer_size, "buffer_size")), *_seed_fields(seed, reshuffle_each_iteration)],
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
        *,
        row_groups: Optional[int] = None,
    ) -> Dataset:
        """Permutes all records of files that are not compressed (TFRecords, lines, JSON lines, CSV, tar, records of one length); directly behind them.

        No buffer and no time to fill one. Builds the files' index where it is missing. `block_size` and `read_first` are for files
        that are not in the page cache.

        Args:
          block_size: blocks of so many consecutive records are permuted, and then the records of as many
            blocks as hold `buffer_size` of them among each other: the disk reads whole blocks, ahead.
          buffer_size: at least block_size, and only with it.
          read_first: the files are read once from beginning to end before the first record is taken.
          row_groups: of Dataset.parquet alone: all row groups are permuted, and then the rows of so many among each other, which a worker process holds at once.
            By default as many as hold 128 MiB, not compressed, from 2 to 64.
        """
        if self._shuffled is not None:
            if block_size is not None or buffer_size is not None or read_first:
                raise ValueError("block_size, buffer_size and read_first are for records of files that are read by bytes; of Parquet files row_groups says how many")
            return self._shuffled(seed, reshuffle_each_iteration, row_groups, name, self._options)
        if row_groups is not None:
            raise ValueError("row_groups is for global_shuffle directly behind Dataset.parquet")
        if self._indices is not None:
            if block_size is not None or buffer_size is not None or read_first:
                raise ValueError("block_size, buffer_size and read_first are for records of files; the indices of an object are permuted at once")
            return self.shuffle(max(1, len(self)), seed, reshuffle_each_iteration, name)
        fields = [*_seed_fields(seed, reshuffle_each_iteration), ("global", True)]
        if block_size is not None:
            fields.append(("block_size", integer(block_size, "block_size")))
        if buffer_size is not None:
            fields.append(("buffer_size", integer(buffer_size, "buffer_size")))
        if read_first:
            fields.append(("read_first", True))
        return self._then("shuffle", fields, cardinality=self._count, name=name)

    def repeat(self, count: Optional[int] = None, name: Optional[str] = None) -> Dataset:
        """Repeats the elements `count` times; None or -1: without end."""
        count = optional(count, "count", "in a flat_map, Dataset.range(n).map(lambda _: x) are as many copies of x as n tells")
        cardinality = _cardinality.of_repeat(self._count, -1 if count is None else count)
        return self._then("repeat", [("count", count)], cardinality=cardinality, name=name)

    def take(self, count: int, name: Optional[str] = None) -> Dataset:
        """The first `count` elements; -1: all."""
        count = integer(count, "count", "enumerate().take_while(lambda i, x: i < n), and map(lambda i, x: x), are as many as n tells")
        return self._then("take", [("count", count)], cardinality=_cardinality.of_take(self._count, count), name=name)

    def skip(self, count: int, name: Optional[str] = None) -> Dataset:
        """All but the first `count` elements; -1: none."""
        count = integer(count, "count", "enumerate().filter(lambda i, x: i >= n), and map(lambda i, x: x), leave out as many as n tells")
        return self._then("skip", [("count", count)], cardinality=_cardinality.of_skip(self._count, count), name=name)

    def shard(self, num_shards: int, index: int, name: Optional[str] = None) -> Dataset:
        """Every num_shards-th element, from number `index` on."""
        num_shards, index = integer(num_shards, "num_shards"), integer(index, "index")
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
            [("start", integer(start, "start") or None)],
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
        structure, inputs = _structure.flatten(nest, lambda value: isinstance(value, Chain), "the argument of zip")
        if len(inputs) == 1:
            if structure is None:
                return inputs[0]
            is_tuple = isinstance(inputs[0]._structure, tuple)
            return inputs[0].map(lambda *parts: _structure.fill(structure, iter([parts if is_tuple else parts[0]])))
        stage = Stage("zip", [("input", [Nested(dataset._stages) for dataset in inputs[1:]])], name)
        zipped = of_stages(
            [*inputs[0]._stages, stage],
            tuple(dataset._structure for dataset in inputs),
            _cardinality.of_zip([dataset._count for dataset in inputs]),
            merged_options(inputs),
            next((dataset._window for dataset in inputs if dataset._window), None),
        )
        if structure == (None,) * len(inputs):
            return zipped
        return zipped.map(lambda *elements: _structure.fill(structure, iter(elements)))

    def concatenate(self, dataset: Dataset, name: Optional[str] = None) -> Dataset:
        """The elements of this dataset, then those of `dataset`, which are of the same types."""
        if not isinstance(dataset, Chain):
            raise TypeError(f"concatenate takes a Dataset, not {type(dataset).__name__}")
        if self._structure != dataset._structure:
            raise TypeError(
                f"the elements of concatenated datasets have one structure: {shown(self._structure)} and "
                f"{shown(dataset._structure)}"
            )
        if self._window is not None and dataset._window is not None and share_source(self, dataset):
            return _nested.joined(self, dataset, name)
        joined = self._then(
            "concatenate",
            [("input", [Nested(dataset._stages)])],
            cardinality=_cardinality.of_concatenate(self._count, dataset._count),
            name=name,
        )
        joined._options = self._options.merge(dataset._options)
        return joined


def _seed_fields(seed, reshuffle):
    reshuffle = True if reshuffle is None else bool(reshuffle)
    return [
        ("seed", Seed(optional(seed, "seed"), reshuffle)),
        ("reshuffle_each_iteration", None if reshuffle else False),
    ]
