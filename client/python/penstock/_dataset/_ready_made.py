"""Pipelines that tf.data.experimental has ready made: make_csv_dataset, make_batched_features_dataset."""

import codecs
import os

import numpy as np

from penstock._dataset import Dataset
from penstock._dataset._arguments import at_least, integer, optional, turns
from penstock._dataset._paths import without_globs
from penstock._dataset._readers import CsvDataset, TFRecordDataset
from penstock._tracing._refusals import listed


def _files(file_pattern):
    """Paths in byte order of a glob or a list of them."""
    import glob  # for these readers only, as what is imported below: `import penstock` stays quick

    patterns = [file_pattern] if isinstance(file_pattern, (str, bytes, os.PathLike)) else list(file_pattern)
    names = []
    for pattern in patterns:
        pattern = os.fsdecode(pattern)
        # A path that is there is one, as the daemon takes it.
        names += [pattern] if os.path.lexists(pattern) or not glob.has_magic(pattern) else glob.glob(pattern)
    if not names:
        raise ValueError(f"no file matches {file_pattern!r}")
    return sorted(names, key=os.fsencode)


def _plain(path, compression):
    """A file's plain bytes, which are read and inflated as they are asked for."""
    import gzip
    import io
    import zlib

    class Inflated(io.RawIOBase):
        """Of zlib streams that follow each other."""

        def __init__(self):
            self._file = open(path, "rb")
            self._stream = zlib.decompressobj()

        def readable(self):
            return True

        def close(self):
            self._file.close()
            super().close()

        def readinto(self, buffer):
            while True:
                stream = self._stream
                data = stream.unconsumed_tail or stream.unused_data or self._file.read(io.DEFAULT_BUFFER_SIZE)
                if stream.eof and data:
                    self._stream = stream = zlib.decompressobj()
                plain = stream.decompress(data, len(buffer))
                if plain or not data:
                    buffer[: len(plain)] = plain
                    return len(plain)

    if compression == "ZSTD":
        raise ValueError("column_names and column_defaults are needed where files are compressed by ZSTD")
    if compression == "GZIP":
        return gzip.open(path, "rb")
    return io.BufferedReader(Inflated()) if compression == "ZLIB" else open(path, "rb")


def _rows(path, compression, field_delim, use_quote_delim, encoding):
    """The rows of a file, which is read as far as they are taken."""
    import codecs
    import csv
    import io

    quoting = csv.QUOTE_MINIMAL if use_quote_delim else csv.QUOTE_NONE
    # A byte order mark is no part of the first name.
    encoding = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    # Where a line ends is csv's affair, which knows quotation marks.
    with io.TextIOWrapper(_plain(path, compression), encoding, newline="") as text:
        for row in csv.reader(text, delimiter=field_delim, quoting=quoting):
            yield row or [""]  # a line of nothing is one empty field


def _names_of(files, *layout):
    """The names of the columns, which are the same in all files."""
    names = None
    for path in files:
        own = next(_rows(path, *layout), None)
        if own is None:
            raise ValueError(f"the names of the columns are those of each file's header, and {path} is empty")
        if own != (names or own):
            raise ValueError(f"the columns of {path} are {own}, those of {files[0]} are {names}")
        names = own
    return names


def _sample(files, header, num_columns, num_rows, *layout):
    """The first rows of the files, all of them where num_rows is None."""
    import itertools

    def rows():
        for path in files:
            for number, row in enumerate(itertools.islice(_rows(path, *layout), int(header), None)):
                if len(row) != num_columns:
                    raise ValueError(f"expected {num_columns} fields, found {len(row)} ({path}, record {number})")
                yield row

    return list(itertools.islice(rows(), num_rows))


def _is(value, dtype):
    try:
        if dtype in (np.int32, np.int64):
            return np.iinfo(dtype).min <= int(value) <= np.iinfo(dtype).max
        number = float(value)
    except ValueError:
        return False
    return dtype == np.float64 or not np.isfinite(number) or abs(number) <= np.finfo(np.float32).max


def _inferred(values, na_value):
    """The narrowest type of int32, int64, float32 and float64 that all values have; else string."""
    values = [value for value in values if value not in ("", na_value)]
    if not values:
        return ""
    for dtype in (np.int32, np.int64, np.float32, np.float64):
        if all(_is(value, dtype) for value in values):
            return dtype(0)
    return ""


def make_csv_dataset(
    file_pattern,
    batch_size,
    column_names=None,
    column_defaults=None,
    label_name=None,
    select_columns=None,
    field_delim=",",
    use_quote_delim=True,
    na_value="",
    header=True,
    num_epochs=None,
    shuffle=True,
    shuffle_buffer_size=10000,
    shuffle_seed=None,
    prefetch_buffer_size=None,
    num_parallel_reads=None,
    sloppy=False,
    num_rows_for_inference=100,
    compression_type=None,
    ignore_errors=False,
    encoding="utf-8",
):
    """Batches of CSV files' columns, as tf.data.experimental.make_csv_dataset.

    Args:
      file_pattern: a path, a glob, or a list of them.
      column_names: of all columns; by default those of the files' headers, which are all the same.
      column_defaults: one for each column that is read, as CsvDataset's record_defaults; by default 0 or "" of the narrowest type
        that the first num_rows_for_inference rows of the files have (None: all of their rows).
      label_name: a column that becomes the second of a pair.
      select_columns: names or numbers of the columns that are read; by default all.
      num_epochs: None: without end, and without a shorter last batch.
      num_parallel_reads: the number of files that are read in turns, 1 by default. Never decided by the machine.
      sloppy, encoding of anything but names: without effect.

    Returns:
      A Dataset of dicts from names to arrays of shape (rows,), or of pairs of such a dict and the label's array.
    """
    files = _files(file_pattern)
    # The daemon takes names for globs.
    patterns = [without_globs(path) for path in files]
    layout = (compression_type, field_delim, use_quote_delim, encoding)
    if column_names is None:
        if not header:
            raise ValueError("column_names are needed where files have no header")
        column_names = _names_of(files, *layout)
    column_names = list(column_names)
    if len(set(column_names)) != len(column_names):
        raise ValueError(f"column names are distinct, not {column_names}")
    if select_columns is None:
        selected = list(range(len(column_names)))
    else:
        unknown = [name for name in select_columns if isinstance(name, str) and name not in column_names]
        if unknown:
            raise ValueError(f"select_columns has {unknown}, which are no columns; these are: {listed(map(repr, column_names))}")
        beyond = [name for name in select_columns if not isinstance(name, str) and not 0 <= integer(name, "a column's number") < len(column_names)]
        if beyond:
            raise ValueError(f"select_columns has {beyond}, where columns are numbered from 0 to {len(column_names) - 1}")
        selected = sorted(column_names.index(name) if isinstance(name, str) else int(name) for name in select_columns)
    names = [column_names[column] for column in selected]
    if label_name is not None and label_name not in names:
        raise ValueError(f"label_name is one of the columns that are read, {listed(map(repr, names))}; not {label_name!r}")
    if column_defaults is None:
        seen = _sample(files, header, len(column_names), num_rows_for_inference, *layout)
        column_defaults = [_inferred([row[column] for row in seen], na_value) for column in selected]

    def read(paths):
        return CsvDataset(
            paths,
            column_defaults,
            compression_type=compression_type,
            header=header,
            field_delim=field_delim,
            use_quote_delim=use_quote_delim,
            na_value=na_value,
            select_cols=None if select_columns is None else selected,
        )

    cycle_length = turns(num_parallel_reads, "num_parallel_reads") or 1
    codecs.lookup(encoding)
    at_least(1, shuffle_buffer_size, "shuffle_buffer_size")
    optional(shuffle_seed, "shuffle_seed")
    dataset = read(patterns) if cycle_length == 1 else Dataset.list_files(patterns, shuffle=False).interleave(read, cycle_length, 1)
    if ignore_errors:
        dataset = dataset.ignore_errors()
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None)

    def named(*columns):
        features = dict(zip(names, columns))
        if label_name is None:
            return features
        label = features.pop(label_name)
        return features, label

    dataset = dataset.map(named)
    return dataset if prefetch_buffer_size is None else dataset.prefetch(prefetch_buffer_size)


def make_batched_features_dataset(
    file_pattern,
    batch_size,
    features,
    reader=None,
    label_key=None,
    reader_args=None,
    num_epochs=None,
    shuffle=True,
    shuffle_buffer_size=10000,
    shuffle_seed=None,
    prefetch_buffer_size=None,
    reader_num_threads=None,
    parser_num_threads=None,
    sloppy_ordering=False,
    drop_final_batch=False,
):
    """Batches of parsed Examples of files, as tf.data.experimental.make_batched_features_dataset.

    Args:
      features: a dict from keys to penstock.io's features, each parsed as tf.io.parse_example does.
      reader: a class of datasets that takes file names; by default TFRecordDataset.
      label_key: a feature that becomes the second of a pair.
      num_epochs: None: without end.
      reader_num_threads, parser_num_threads, sloppy_ordering: without effect.
    """
    for value, what in ((reader_num_threads, "reader_num_threads"), (parser_num_threads, "parser_num_threads")):
        turns(value, what)
    at_least(1, shuffle_buffer_size, "shuffle_buffer_size")
    optional(shuffle_seed, "shuffle_seed")
    patterns = [without_globs(path) for path in _files(file_pattern)]  # the daemon takes names for globs
    dataset = (reader or TFRecordDataset)(patterns, *(reader_args or ()))
    if shuffle:
        dataset = dataset.shuffle(shuffle_buffer_size, shuffle_seed)
    if num_epochs != 1:
        dataset = dataset.repeat(num_epochs)
    dataset = dataset.batch(batch_size, drop_remainder=drop_final_batch or num_epochs is None)
    dataset = dataset.parse_example(features)
    if label_key is not None:
        if label_key not in features:
            raise ValueError(f"label_key is one of the features, {listed(map(repr, features))}; not {label_key!r}")
        dataset = dataset.map(lambda x: ({key: x[key] for key in x if key != label_key}, x[label_key]))
    return dataset if prefetch_buffer_size is None else dataset.prefetch(prefetch_buffer_size)
