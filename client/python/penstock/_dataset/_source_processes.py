"""Dataset.from_source: records that a penstock.io.Source reads in worker processes.

    Source.read ─► blocks of records, with the position behind each ─► from_generator ─► unbatch ─► records

A block goes through the daemon as one element, so that a record costs neither a message nor an array of its own. Its bounds follow from the position in front
of it, so that a resume finds them again.
"""

import itertools

import numpy as np

from penstock import _structure
from penstock._dataset import _python_sources
from penstock._dataset._arguments import at_least
from penstock._dtypes import string
from penstock._options import TensorSpec
from penstock._row import At, BadData, Texts
from penstock._source import Source


# Strings that are shorter on average.
_JOINED_BYTES = 1024
_NOTHING = object()
_OTHERWISE = "read() yields something else than output declares"


class _Blocks:
    """In a worker: the iterable of a source's blocks."""

    def __init__(self, source, structure, specs, most_records, most_bytes):
        self.source, self.structure, self.specs = source, structure, specs
        self.most_records, self.most_bytes = most_records, most_bytes
        self.features = self.flatten = None  # made in the worker, where they are first needed
        # What messages call it.
        self.__qualname__ = type(source).__qualname__

    def __call__(self, position=None, shard_index=None, num_shards=None):
        source = self.source if num_shards is None else self.source.shard(num_shards, shard_index)
        return self.blocks(source, source.read(position), position)

    def blocks(self, source, items, start):
        """Blocks of the records behind a position."""
        if not source.seeks:
            items = ((record, None) for record in items)
        is_text = self.structure is None and self.specs[0].dtype is string
        make = self.texts if is_text else self.columns
        most_records, most_bytes = self.most_records, self.most_bytes
        # Behind a position blocks end where they do in a run from the beginning, which has seen one.
        records, size, position, has_positions = [], 0, None, start is not None
        items, largest, failure, taken, wanted = iter(items), 0, None, 0, 0
        item = _NOTHING
        try:
            while failure is None and taken == wanted:
                # As many as the block surely takes, if they are no larger than those before them: no block waits for records behind it.
                room = min(most_records - len(records), (most_bytes - size) // largest) if is_text and largest else 1
                wanted, pairs = max(1, room), []
                try:
                    pairs.extend(itertools.islice(items, wanted))
                except BaseException as error:
                    failure = error  # behind those that came before it
                taken = len(pairs)
                if taken > 1 and (more := _joining(pairs, size, most_bytes)):
                    new, size, most = more
                    records += new
                    largest = max(largest, most)
                    position = pairs[-1][1]
                    has_positions = has_positions or any(at is not None for _, at in pairs)
                    pairs = ()
                    if (size >= most_bytes or len(records) >= most_records) and (position is not None or not has_positions):
                        full, records, size = records, [], 0
                        yield _at(make(full), position)
                for item in pairs:
                    record, position = item
                    item = _NOTHING
                    if source.gives_rows or most_records == 1:
                        yield record if position is None else At(record, position)
                        continue
                    records.append(record)
                    length = len(record) if is_text else 64
                    size += length
                    largest = max(largest, length)
                    if position is not None:
                        has_positions = True
                    if (size >= most_bytes or len(records) >= most_records) and (position is not None or not has_positions):
                        full, records, size = records, [], 0
                        yield _at(make(full), position)
            if failure is not None:
                raise failure
        except GeneratorExit:
            raise
        except BaseException as error:
            if item is not _NOTHING and isinstance(error, (TypeError, ValueError)):
                raise TypeError(
                    f"{self.__qualname__}.read() yields pairs of a record and the position behind it, not a {type(item).__name__}; seeks = False: records alone"
                ) from None
            if records and is_text:
                self.texts(records)  # says what is wrong with one
            # What was read before is there, whatever comes of the rest.
            if records:
                yield _at(make(records), position)
            raise
        if records:
            yield _at(make(records), position)

    def texts(self, records, path=None):
        """Strings as one column; `path`: of the tensor in a nest that they are."""
        try:
            pieces = records if set(map(type, records)) == {bytes} else list(map(_encoded, records))
            lengths = np.fromiter(map(len, pieces), np.uint32, len(pieces))
            # Short ones are joined faster than they are written one by one.
            return Texts(lengths, pieces if lengths.sum(dtype=np.int64) > _JOINED_BYTES * len(pieces) else [b"".join(pieces)])
        except TypeError:
            wrong = next(type(record).__name__ for record in records if not isinstance(record, (bytes, bytearray, memoryview, str)))
            if path is not None:
                raise BadData(f"{_OTHERWISE}: a {wrong} for {path!r}, not string ()") from None
            raise TypeError(f"{self.__qualname__}.read() yields bytes, not a {wrong}; from_source(output=…) says what else records are") from None

    def columns(self, records):
        """A nest of arrays, of records of fixed sizes."""
        # Modules of a worker process, which this is.
        from penstock._worker._errors import Refused
        from penstock._worker._features import Feature
        from penstock._worker._results import flattener

        if self.features is None:
            named = zip(_structure.paths(self.structure), self.specs)
            described = [{"name": path, "dtype": getattr(spec.dtype, "name", spec.dtype), "shape": spec.shape} for path, spec in named]
            # Numbers of a lesser type are cast, as from_generator does.
            self.features = [Feature(one, casts=True) for one in described]
            self.flatten = flattener(self.structure)
        rows = []
        try:
            for record in records:
                rows.append([])
                self.flatten(record, rows[-1])
            columns = [self.column(feature, values) for feature, values in zip(self.features, zip(*rows))]
        except Refused as refused:
            raise BadData(f"{_OTHERWISE}: {refused}") from None
        return _structure.fill(self.structure, iter(columns))

    def column(self, feature, values):
        from penstock._worker._results import checked

        if feature.is_string:
            return self.texts(values, feature.name)
        try:
            arrays = [np.asarray(value) for value in values]
        except ValueError:
            arrays = []
        # Most are as declared.
        if not arrays or any(array.dtype != feature.dtype or array.shape != feature.shape for array in arrays):
            arrays = [checked(feature, value) for value in values]
        return np.stack(arrays)


def _joining(pairs, size, most_bytes):
    """The records of pairs, the bytes of a block with them, and those of the largest; None where one is no pair of a text, or the block is full in front of the last."""
    try:
        records = [record for record, _ in pairs]
        lengths = list(map(len, records))
    except (TypeError, ValueError):
        return None
    size += sum(lengths)
    return None if size - lengths[-1] >= most_bytes else (records, size, max(lengths))


class _BlocksAgain(_Blocks):
    """Of a source that does not seek."""

    def __call__(self, shard_index=None, num_shards=None):
        source = self.source if num_shards is None else self.source.shard(num_shards, shard_index)
        return self.blocks(source, source.read(None), None)


def _encoded(record):
    return record.encode() if isinstance(record, str) else bytes(memoryview(record))


def _at(element, position):
    return element if position is None else At(element, position)


def from_source(source, output, num_shards, block_records, block_bytes, name, options):
    """As Dataset.from_source."""
    if not isinstance(source, Source):
        raise TypeError(f"from_source takes a penstock.io.Source, not a {type(source).__name__}; from_generator takes iterables, from_python what can be indexed")
    at_least(1, block_records, "block_records")
    at_least(1, block_bytes, "block_bytes")
    structure, specs = _structure.flatten(
        TensorSpec((), string) if output is None else output, lambda value: hasattr(value, "shape") and hasattr(value, "dtype"), "output"
    )
    specs = [TensorSpec(spec.shape, spec.dtype) for spec in specs]
    # Records of sizes of their own go one by one.
    is_joined = source.gives_rows or all(None not in spec.shape and (spec.dtype is not string or not spec.shape) for spec in specs)
    kind = _Blocks if source.seeks else _BlocksAgain
    if is_joined and not source.gives_rows and block_records > 1:
        # A cursor counts the records of a block, and is of blocks of this size.
        options = {**options, "version": f"{options.get('version', '')} in blocks of {block_records} records, {block_bytes} bytes".strip()}
    blocks = kind(source, structure, specs, block_records if is_joined else 1, block_bytes)
    of_block = [TensorSpec((None, *spec.shape) if is_joined else spec.shape, spec.dtype) for spec in specs]
    signature = _structure.fill(structure, iter(of_block))
    if not is_joined or not source.gives_rows and block_records == 1:
        signature = _structure.fill(structure, iter(specs))
        return _python_sources.from_generator(blocks, None, None, None, signature, name, num_shards, options)
    dataset = _python_sources.from_generator(blocks, None, None, None, signature, name, num_shards, options)
    return dataset._then("unbatch", [("block_size", 1)])
