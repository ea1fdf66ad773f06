"""Dataset.from_source: records that a penstock.io.Source reads in worker processes.

    Source.read ─► blocks of records, with the position behind each ─► from_generator ─► unbatch ─► records

A block goes through the daemon as one element, so that a record costs neither a message nor an array of its own. Its bounds follow from the position in front
of it, so that a resume finds them again.
"""

import numpy as np

from penstock import _structure
from penstock._dataset import _python_sources
from penstock._dataset._arguments import at_least
from penstock._dtypes import string
from penstock._options import TensorSpec
from penstock._row import At, Texts
from penstock._source import Source


# Strings that are shorter on average.
_JOINED_BYTES = 1024
_NOTHING = object()


class _Blocks:
    """In a worker: the iterable of a source's blocks."""

    def __init__(self, source, structure, specs, most_records, most_bytes):
        self.source, self.structure, self.specs = source, structure, specs
        self.most_records, self.most_bytes = most_records, most_bytes
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
        item = _NOTHING
        try:
            for item in items:
                record, position = item
                item = _NOTHING
                if source.gives_rows or most_records == 1:
                    yield record if position is None else At(record, position)
                    continue
                records.append(record)
                size += len(record) if is_text else 64
                if position is not None:
                    has_positions = True
                if (size >= most_bytes or len(records) >= most_records) and (position is not None or not has_positions):
                    full, records, size = records, [], 0
                    yield _at(make(full), position)
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

    def texts(self, records):
        try:
            pieces = records if set(map(type, records)) == {bytes} else list(map(_encoded, records))
            lengths = np.fromiter(map(len, pieces), np.uint32, len(pieces))
            # Short ones are joined faster than they are written one by one.
            return Texts(lengths, pieces if lengths.sum(dtype=np.int64) > _JOINED_BYTES * len(pieces) else [b"".join(pieces)])
        except TypeError:
            wrong = next(type(record).__name__ for record in records if not isinstance(record, (bytes, bytearray, memoryview, str)))
            raise TypeError(f"{self.__qualname__}.read() yields bytes, not a {wrong}; from_source(output=…) says what else records are") from None

    def columns(self, records):
        """A nest of arrays, of records of fixed sizes."""
        flat = []
        for record in records:
            structure, tensors = _structure.flatten(record, lambda value: not isinstance(value, (dict, tuple)), "a record")
            if structure != self.structure:
                raise TypeError(f"{self.__qualname__}.read() yielded a record of another structure than output says")
            # Equal dicts may have their keys in another order.
            flat.append(_structure.in_order(self.structure, structure, tensors))
        columns = []
        for spec, values in zip(self.specs, zip(*flat)):
            columns.append(self.texts(values) if spec.dtype is string else np.stack([np.asarray(value) for value in values]))
        return _structure.fill(self.structure, iter(columns))


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
