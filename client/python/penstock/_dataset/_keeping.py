"""Elements that are kept: in memory, and in files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Optional, Union

import numpy as np

from penstock import _errors
from penstock._dataset._arguments import at_least, optional, turns
from penstock._dataset._cardinality import UNKNOWN
from penstock._dataset._chain import ASK, Chain, of_stages
from penstock._spec._stage import Stage, Trait, declare, of_first_pass
from penstock._tracing import _trace

if TYPE_CHECKING:
    from penstock._dataset import Dataset

# The file that `save` writes.
_SAVED = "elements.penstock-elements"

declare("load", Trait.GIVES_NO_PATHS)


class Keeping:
    """Methods of Dataset that write elements and read them again."""

    def cache(self, filename: Union[str, os.PathLike] = "", name: Optional[str] = None, *, max_bytes: Optional[int] = None) -> Dataset:
        """Keeps the elements when they are first computed: in memory, or in a file for later runs too.

        Elements before it are those of the first pass in every epoch. In memory, each `for` begins with an empty cache,
        which serves the epochs of a `repeat` behind it.

        Args:
          filename: a folder, made if it is missing. The first pass through all elements writes a file there, which any
            dataset of the same stages and files takes its elements from. Give shuffles, random and Python functions before
            it a seed.
          max_bytes: elements beyond are computed in every pass, and what is kept stays. A quarter of the machine's
            memory by default; in a file as many as the disk takes.
        """
        fields = [("max_bytes", optional(max_bytes, "max_bytes"))]
        if not filename:
            return self._then("cache", fields, cardinality=self._count, name=name)
        kept = self._like(of_first_pass(self._stages), self._known_structure, self._count)
        return kept._then("cache", [("filename", _folder(filename)), *fields], cardinality=self._count, name=name)

    def snapshot(
        self,
        path: Union[str, os.PathLike],
        compression: str = "AUTO",
        reader_func: Optional[Callable] = None,
        shard_func: Optional[Callable] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Keeps the elements in the folder `path`, as cache(path) does: in one order, whoever reads them.

        Args:
          compression: "AUTO" or "NONE"; files are not compressed.
          reader_func: as load's.
          shard_func: refused; there is one file.
        """
        if compression not in ("AUTO", "NONE", None):
            raise _errors.UnimplementedError(f"a compressed snapshot is not built: {compression!r}; give 'NONE'")
        _no_functions("snapshot", shard_func=shard_func)
        kept = self._like(of_first_pass(self._stages), self._known_structure, self._count)
        kept = kept._then("snapshot", [("path", _folder(path))], cardinality=self._count, name=name)
        return kept if reader_func is None else _read_by(reader_func, [kept])

    def save(
        self,
        path: Union[str, os.PathLike],
        compression: Optional[str] = None,
        shard_func: Optional[Callable] = None,
        checkpoint_args: Any = None,
    ) -> None:
        """Runs the dataset once and writes its elements into the folder `path`, for Dataset.load.

        What was there is replaced when the last element is durable. The format is Penstock's own: one file, whatever the shards.
        `path` may be an address ("s3://bucket/folder", "gs://bucket/folder"): then the file is one object, which is there whole or not at all.

        Args:
          compression: None or "NONE", or "GZIP": each element by itself.
          shard_func: gets an element and returns the number of its shard, an int64 of shape () from 0 to 2^32 - 1; traced, as map's
            function. load's reader_func gets a dataset of each. Not for an address.
          checkpoint_args: refused; the file is whole or absent.
        """
        if compression not in ("NONE", "GZIP", None):
            raise _errors.UnimplementedError(f"saving with compression {compression!r} is not built; give None or 'GZIP'")
        _no_functions("save", checkpoint_args=checkpoint_args)
        dataset = self if shard_func is None else self._numbered(shard_func)
        fields = [
            ("path", _folder(path)),
            ("compression", "GZIP" if compression == "GZIP" else None),
            ("sharded", None if shard_func is None else True),
        ]
        # Every element is gone through, and none is handed over: skip(-1) would not ask for any.
        for _ in dataset._then("save", fields).skip(np.iinfo(np.int64).max):
            pass

    def _numbered(self, shard_func):
        """Pairs of the number of the shard and the element."""

        def number(*parts):
            element = parts if isinstance(self._structure, tuple) else parts[0]
            shard = shard_func(*parts)
            return (shard if isinstance(shard, _trace.StandIn) else np.int64(shard)), element

        return self.map(number)

    @staticmethod
    def load(
        path: Union[str, os.PathLike],
        element_spec: Any = None,
        compression: Optional[str] = None,
        reader_func: Optional[Callable] = None,
        wait: bool = False,
    ) -> Dataset:
        """The elements that save(path) has written, in their order; global_shuffle() behind it permutes all of them.

        At an address ("s3://…", "gs://…", "http://…") they are fetched ahead, and how many there are is not known beforehand.

        Args:
          element_spec, compression: ignored; the file knows.
          reader_func: makes one dataset of the dataset of all shards, in the order of their numbers:
            `lambda shards: shards.interleave(lambda shard: shard)`, or `lambda shards: shards.flat_map(lambda shard: shard.shuffle(9))`.
            Without it elements come in the order in which they were saved, whatever their shards.
          wait: refused; the file is whole or absent.
        """
        if compression not in ("NONE", "GZIP", None):
            raise _errors.UnimplementedError(f"loading with compression {compression!r} is not built; give None: the file knows")
        _no_functions("load", wait=wait)
        folder = _folder(path)
        shards = _saved_shards(folder)
        if shards is None:
            loaded = _loaded(folder, _saved_count(folder))
            return loaded if reader_func is None else _read_by(reader_func, [loaded])
        if reader_func is None:
            return _loaded(folder, _saved_count(folder))._unnumbered()
        counts = shards.items() or [(0, 0)]
        return _read_by(reader_func, [_loaded(folder, count, shard)._unnumbered() for shard, count in counts])

    def _unnumbered(self):
        return self.map(lambda shard, element: element)


def _loaded(folder, count, shard=None):
    return of_stages([Stage("load", [("path", folder), ("shard", shard)])], ASK, count)


def _folder(path):
    """A folder's path for the daemon, whose own folder is another one than ours; or an address."""
    if not path:
        raise ValueError("expected the path of a folder")
    name = os.fsdecode(path)
    return name.rstrip("/") if _is_far(name) else os.path.abspath(name)


def _is_far(folder):
    return "://" in folder


def _footer(file):
    """The end of a file of elements (io/element/element_file.h), or None; whether it is whole is the daemon's to check."""
    file.seek(-64, os.SEEK_END)
    footer = file.read(64)
    return footer if footer[56:60] == b"LETS" else None


def _saved_count(folder):
    """How many elements there are."""
    try:
        with open(os.path.join(folder, _SAVED), "rb") as file:
            footer = _footer(file)
    except OSError:
        return UNKNOWN
    return UNKNOWN if footer is None else int.from_bytes(footer[8:16], "little")


def _saved_shards(folder):
    """How many elements each shard has, by its number; None where there are no shards."""
    try:
        with open(os.path.join(folder, _SAVED), "rb") as file:
            footer = _footer(file)
            if footer is None:
                return None
            index_at, size, schema_at = (int.from_bytes(footer[i : i + 8], "little") for i in (0, 8, 16))
            file.seek(schema_at)
            if not file.read(64).removeprefix(b"compressed ").startswith(b"sharded "):
                return None
            file.seek(index_at)
            index = np.frombuffer(file.read(size * 32), np.uint32)
    except OSError:
        return None
    numbers, counts = np.unique(index[7::8], return_counts=True)
    return dict(zip(numbers.tolist(), counts.tolist()))


def _no_functions(method, **arguments):
    for name, value in arguments.items():
        if value:
            raise _errors.UnimplementedError(f"{method}({name}=…) has no meaning here: there is one file, in one order")


class Shards:
    """What a reader_func gets: a dataset of datasets, one for each shard. Reading ahead is nothing to it."""

    def __init__(self, shards):
        self._shards = shards

    def _made(self, map_func):
        made = [map_func(shard) for shard in self._shards]
        for dataset in made:
            if not isinstance(dataset, Chain):
                raise TypeError(
                    f"the function given to interleave or flat_map returns a Dataset, not {type(dataset).__name__}"
                )
        return made

    def interleave(self, map_func, cycle_length=None, block_length=1, *args, **kwargs):
        """The datasets that map_func makes of the shards, block_length elements of each by turns, cycle_length of them at a time.

        By default 16 at a time, however many processors there are. With more shards than that the lengths of what map_func makes have to
        be known.
        """
        cycle = turns(cycle_length, "cycle_length") or 16
        block = 1 if block_length is None else at_least(1, block_length, "block_length")
        made = self._made(map_func)
        if len(made) == 1:
            return made[0]
        if len(made) <= cycle and block == 1:
            return made[0].choose_from_datasets(made, made[0].range(len(made)).repeat(), False)
        counts = [dataset._count for dataset in made]
        if min(counts) < 0:
            raise ValueError(
                "shards.interleave takes turns among more datasets than cycle_length, or in blocks, only where their lengths are known; "
                "give cycle_length=len(shards) and block_length=1, or use flat_map"
            )
        order = np.array(_turns(counts, cycle, block), np.int64)
        if not len(order):
            return made[0]
        return made[0].choose_from_datasets(made, made[0].from_tensor_slices(order))

    def flat_map(self, map_func, name=None):
        """The datasets that map_func makes of the shards, one after another."""
        made = self._made(map_func)
        whole = made[0]
        for dataset in made[1:]:
            whole = whole.concatenate(dataset)
        return whole

    def map(self, map_func, *args, **kwargs):
        """Shards of what map_func makes of each."""
        return Shards(self._made(map_func))

    def shuffle(self, buffer_size, seed=None, *args, **kwargs):
        """Shards in a random order, the same in each pass."""
        at_least(1, buffer_size, "buffer_size")
        order = np.random.default_rng(seed).permutation(len(self._shards))
        return Shards([self._shards[i] for i in order])

    def _same(self, *args, **kwargs):
        return self

    prefetch = with_options = _same

    def cardinality(self):
        return len(self._shards)

    __len__ = cardinality

    def __getattr__(self, name):
        raise AttributeError(f"shards have no {name!r}; a reader_func may use interleave, flat_map, map, shuffle and prefetch of them")


def _turns(counts, cycle, block):
    """Of which dataset each element of an interleave is, by the datasets' lengths: tf.data's order."""
    turns = []
    left = list(counts)
    waiting = list(range(len(counts)))
    slots = [None] * cycle
    slot = 0
    while True:
        if slots[slot] is None and waiting:
            slots[slot] = waiting.pop(0)
        shard = slots[slot]
        if shard is not None:
            taken = min(block, left[shard])
            turns += [shard] * taken
            left[shard] -= taken
            if taken < block:
                # The end shows when one more is asked for; the next dataset takes the place in its turn.
                slots[slot] = None
        if not waiting and all(shard is None for shard in slots):
            return turns
        slot = (slot + 1) % cycle


def _read_by(reader_func, shards):
    dataset = reader_func(Shards(shards))
    if not isinstance(dataset, Chain):
        raise TypeError(f"reader_func returns a Dataset, not {type(dataset).__name__}")
    return dataset
