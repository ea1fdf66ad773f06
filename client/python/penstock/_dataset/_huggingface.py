"""Dataset.from_huggingface: a datasets.Dataset by its Arrow files.

What a datasets.Dataset is of stands in its table: blocks that are maps of files, with a list of what was done to each since (`replays`), and an index mapping, a
table of one column. Anything else than what is known here is no error: the dataset is then indexed by worker processes, as any other object.
"""

import contextlib
import os
import warnings

from penstock._dataset._arrow_features import ArrowFeature, arrow_source
from penstock._dataset._chain import of_stages

# Row numbers that stand in the spec itself.
_LISTED = 100_000
_AXES = 3
# Features that are a struct of bytes and a path in the file.
_MEDIA = ("Image", "Audio", "Video", "Pdf", "Nifti")


class NotInPlace(Exception):
    """Why a dataset is not read by its files."""


def from_huggingface(dataset, columns, defaults, options, from_python):
    """As Dataset.from_huggingface; `from_python` is Dataset.from_python."""
    kind = type(dataset)
    if kind.__name__ in ("DatasetDict", "IterableDatasetDict"):
        raise TypeError(f"from_huggingface takes one split of a {kind.__name__}, such as dataset[{next(iter(dataset), 'train')!r}]")
    if not all(hasattr(dataset, name) for name in ("_data", "features", "column_names", "select_columns")):
        raise TypeError(f"from_huggingface takes a datasets.Dataset, not a {kind.__module__}.{kind.__qualname__}; an iterable is for Dataset.from_generator")
    if columns is not None:
        columns = [columns] if isinstance(columns, str) else list(columns)
        if unknown := [column for column in columns if column not in dataset.column_names]:
            raise ValueError(f"no column {unknown[0]!r}; there are {', '.join(dataset.column_names)}")
        dataset = dataset.select_columns(columns)
    try:
        return _in_place(dataset, columns, dict(defaults or {}))
    except NotInPlace as reason:
        if defaults:
            raise ValueError(f"defaults are for a dataset that is read in place, and this one is not: {reason}") from None
        warnings.warn(f"the dataset is indexed by worker processes (from_python), since {reason}", stacklevel=3)
        return from_python(dataset, **options)


def _in_place(dataset, columns, defaults):
    if dataset._format_type == "custom":
        raise NotInPlace("it has a transform, which is a Python function")
    blocks = [_Block(block) for block in _blocks(dataset._data)]
    wanted = columns if columns is not None else dataset._format_columns or dataset.column_names
    features = {}
    for column in wanted:
        stored = {block.stored(column) for block in blocks}
        if len(stored) != 1:
            raise NotInPlace(f"its files have other names for the column {column!r}")
        _add(features, column, [stored.pop()], dataset.features[column], [])
    for key, value in defaults.items():
        if key not in features:
            raise ValueError(f"a default for {key!r}, which is no feature; there are {', '.join(features)}")
        _set_default(features[key], value)
    paths, rows = _rows(blocks)
    row_file = None
    if dataset._indices is not None:
        row_file, listed = _mapping(dataset)
        rows = [*(rows or []), *listed]
    return of_stages(*arrow_source(paths, features, rows or None, row_file, None, count=len(dataset)))


# --- files ---


def _blocks(table):
    """The parts of the table, one below the other."""
    kind = type(table).__name__
    if kind == "MemoryMappedTable":
        return [table]
    if kind != "ConcatenationTable":
        raise NotInPlace("it is in memory and not in files: save_to_disk() and load_from_disk() put it there")
    blocks = []
    for row in table.blocks:
        row = row if isinstance(row, (list, tuple)) else [row]
        if len(row) != 1:
            raise NotInPlace("it has columns side by side that come from several tables: save_to_disk() and load_from_disk() join them")
        blocks += _blocks(row[0])
    return blocks


class _Block:
    """One map of a file: which of its rows, and what its columns are called.

    Attributes:
      path: absolute.
      start, count: the stretch of rows.
    """

    def __init__(self, block):
        import pyarrow

        self.path = os.path.abspath(block.path)
        self.count = block.num_rows
        self.start = 0
        is_cut = False
        with pyarrow.memory_map(self.path) as source:
            try:
                reader = pyarrow.ipc.open_stream(source)
            except pyarrow.ArrowInvalid:
                reader = pyarrow.ipc.open_file(source)
            names = [(name, name) for name in reader.schema.names]
            for what, args, options in block.replays or []:
                if what == "slice" and not options:
                    self.start += args[0] if args else 0
                    is_cut = True
                elif what == "replace_schema_metadata":
                    pass  # its values are the same
                elif what in ("drop", "drop_columns") and not options:
                    names = [pair for pair in names if pair[0] not in args[0]]
                elif what == "select" and not options:
                    names = [pair for column in args[0] for pair in names if pair[0] == column]
                elif what == "rename_columns" and not options:
                    names = [(new, old) for new, (_, old) in zip(args[0], names)]
                else:
                    raise NotInPlace(f"its table has been changed in memory ({what}): save_to_disk() and load_from_disk() write it down")
            self._names = dict(names)
            self.file_rows = _count(reader) if is_cut else self.count

    def stored(self, column):
        """What the column is called in the file."""
        if column not in self._names:
            raise NotInPlace(f"its file {self.path} has no column {column!r}")
        return self._names[column]


def _count(reader):
    """The rows of all batches; nothing of a map is copied."""
    if hasattr(reader, "num_record_batches"):
        return sum(reader.get_batch(number).num_rows for number in range(reader.num_record_batches))
    return sum(batch.num_rows for batch in reader)


def _rows(blocks):
    """The files, each once, and the fields of stretches; None for all rows of all of them."""
    first_rows, paths, total = {}, [], 0
    starts, counts = [], []
    is_all = True
    for block in blocks:
        if block.path not in first_rows:
            first_rows[block.path] = total
            paths.append(block.path)
            total += block.file_rows
            is_all = is_all and block.start == 0 and block.count == block.file_rows
        else:
            is_all = False
        if block.count:
            starts.append(first_rows[block.path] + block.start)
            counts.append(block.count)
    if is_all:
        return paths, None
    if not starts:
        raise NotInPlace("it has no rows")
    return paths, [("start", starts), ("count", counts)]


def _mapping(dataset):
    """The index mapping: a file, and the fields of a list."""
    table = dataset._indices
    if type(table).__name__ == "MemoryMappedTable" and not table.replays:
        return os.path.abspath(table.path), []
    numbers = table.column(0).to_numpy()
    if len(numbers) == 0:
        raise NotInPlace("it has no rows")
    if len(numbers) <= _LISTED:
        return None, [("row", [int(number) for number in numbers])]
    return _kept_mapping(dataset, numbers), []


def _kept_mapping(dataset, numbers):
    """A file of these row numbers, beside the dataset's own cache."""
    import pyarrow

    folder = os.path.dirname(os.path.abspath(dataset.cache_files[0]["filename"]))
    path = os.path.join(folder, f"penstock-rows-{dataset._fingerprint}.arrow")
    if os.path.exists(path):
        return path
    temporary = f"{path}.{os.getpid()}"
    try:
        batch = pyarrow.record_batch([pyarrow.array(numbers, pyarrow.uint64())], names=["indices"])
        with pyarrow.ipc.new_stream(temporary, batch.schema) as out:
            out.write_batch(batch)
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(temporary)
        raise NotInPlace(f"its {len(numbers)} row numbers cannot be kept beside its files ({error}); flatten_indices() writes the rows themselves") from None
    return path


# --- columns ---


def _add(features, key, path, feature, axes):
    """Adds the ArrowFeatures of a column, and of the fields in it.

    Args:
      path: the names of the column and of fields in it.
      axes: the sizes of the lists around it, -1 for any.
    """
    kind = type(feature).__name__
    if isinstance(feature, (list, tuple)):
        if len(feature) != 1:
            raise NotInPlace(f"the type of {key!r} is not known here: {feature!r}")
        return _add(features, key, path, feature[0], [*axes, -1])
    if isinstance(feature, dict):
        for name, inner in feature.items():
            _add(features, f"{key}.{name}", [*path, name], inner, axes)
        return None
    if kind in ("Sequence", "List", "LargeList"):
        length = getattr(feature, "length", -1)
        # Sequence({…}) is a dict of lists, as it is stored.
        return _add(features, key, path, feature.feature, [*axes, -1 if length is None or length < 0 else length])
    if kind in ("Array2D", "Array3D", "Array4D", "Array5D"):
        return _put(features, key, path, [*axes, *(-1 if size is None else size for size in feature.shape)])
    if kind in _MEDIA:
        _put(features, f"{key}.bytes", [*path, "bytes"], axes)
        return _put(features, f"{key}.path", [*path, "path"], axes, default="")
    if kind == "Translation":
        for language in sorted(feature.languages):
            _put(features, f"{key}.{language}", [*path, language], axes)
        return None
    if kind == "Value" and (feature.dtype.startswith("decimal") or feature.dtype == "null"):
        raise NotInPlace(f"{key!r} is of type {feature.dtype}")
    if kind not in ("Value", "ClassLabel"):
        raise NotInPlace(f"{key!r} is a {kind}")
    return _put(features, key, path, axes)


def _put(features, key, path, axes, default=None):
    if key in features:
        raise NotInPlace(f"two of its columns are called {key!r}")
    any_size = [size for size in axes if size < 0]
    if any(size >= 0 for size in axes[: len(any_size)]) or len(any_size) > _AXES:
        raise NotInPlace(f"{key!r} has lists of any size in lists of a fixed one, or more than {_AXES} in each other")
    column = ".".join(name.replace("\\", "\\\\").replace(".", "\\.") for name in path)
    features[key] = ArrowFeature(column, shape=axes or None, default_value=default)


def _set_default(feature, value):
    if isinstance(value, list) and not value:
        feature.allow_missing = True
    else:
        feature.default_value = ArrowFeature(default_value=value).default_value
