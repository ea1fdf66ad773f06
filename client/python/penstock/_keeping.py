"""Elements that are kept: in memory, and in files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, Optional

from penstock import _dataset, _errors
from penstock._arguments import optional
from penstock._cardinality import UNKNOWN
from penstock._stage import Stage, of_first_pass

if TYPE_CHECKING:
    from penstock._dataset import Dataset


class Keeping:
    """Methods of Dataset that write elements and read them again."""

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
        fields = [("max_bytes", optional(max_bytes, "max_bytes"))]
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
          reader_func: as load's.
          shard_func: refused; there is one file.
        """
        if compression not in ("AUTO", "NONE", None):
            raise _errors.UnimplementedError(f"a compressed snapshot is not built: {compression!r}; give 'NONE'")
        _no_functions("snapshot", shard_func=shard_func)
        kept = self._like(of_first_pass(self._stages), self._known_structure, self._count)
        kept = kept._then("snapshot", [("path", _folder(path))], cardinality=self._count, name=name)
        return kept if reader_func is None else _read_by(reader_func, kept)

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
          reader_func: makes one dataset of the dataset of all shards, of which there is one:
            `lambda shards: shards.interleave(lambda shard: shard)`, or `lambda shards: shards.flat_map(lambda shard: shard.shuffle(9))`.
          wait: refused; the file is whole or absent.
        """
        if compression not in ("NONE", None):
            raise _errors.UnimplementedError(f"loading compressed is not built: {compression!r}; give None")
        _no_functions("load", wait=wait)
        folder = _folder(path)
        loaded = _dataset.Dataset([Stage("load", [("path", folder)])], _dataset._ASK, _saved_count(folder))
        return loaded if reader_func is None else _read_by(reader_func, loaded)


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


class Shards:
    """What a reader_func gets: a dataset of datasets, of which there is one. Order and reading ahead are nothing to it."""

    def __init__(self, shard):
        self._shard = shard

    def interleave(self, map_func, *args, **kwargs):
        """map_func(shard): as flat_map, since there is nothing to take turns with."""
        return self.flat_map(map_func)

    def flat_map(self, map_func, name=None):
        """The dataset that map_func makes of the shard."""
        made = map_func(self._shard)
        if not isinstance(made, _dataset.Dataset):
            raise TypeError(f"the function given to interleave or flat_map returns a Dataset, not {type(made).__name__}")
        return made

    def map(self, map_func, *args, **kwargs):
        """Shards of what map_func makes of the shard."""
        return Shards(self.flat_map(map_func))

    def _same(self, *args, **kwargs):
        return self

    shuffle = prefetch = with_options = _same

    def cardinality(self):
        return 1

    def __getattr__(self, name):
        raise AttributeError(f"shards have no {name!r}; a reader_func may use interleave, flat_map, map, shuffle and prefetch of them")


def _read_by(reader_func, kept):
    dataset = reader_func(Shards(kept))
    if not isinstance(dataset, _dataset.Dataset):
        raise TypeError(f"reader_func returns a Dataset, not {type(dataset).__name__}")
    return dataset
