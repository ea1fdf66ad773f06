"""The datasets that read files."""

from __future__ import annotations

import os
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from penstock import _dtypes
from penstock._dataset import Dataset
from penstock._dataset._arguments import check_unused, integer, optional
from penstock._dataset._paths import files_of
from penstock._dataset._reading import compression, damage_policy, reading_stages
from penstock._spec import _textproto
from penstock._spec._stage import Stage, Trait, declare
from penstock._tracing._language import call


declare("tfrecord", Trait.READS_PATH, Trait.GIVES_NO_PATHS)
declare("text_line", Trait.READS_PATH, Trait.GIVES_NO_PATHS)
declare("fixed_length_record", Trait.READS_PATH, Trait.GIVES_NO_PATHS)
declare("csv", Trait.READS_PATH, Trait.GIVES_NO_PATHS)
declare("tar", Trait.READS_PATH, Trait.GIVES_NO_PATHS)
declare("files", Trait.GIVES_NO_PATHS)


class _Reader(Dataset):
    """A dataset of one source."""

    def _read(self, op, fields, filenames, num_parallel_reads, name, structure=None):
        super().__init__(reading_stages(op, fields, filenames, num_parallel_reads, name), structure)


class TFRecordDataset(_Reader):
    """The records of TFRecord files, one byte string each, as tf.data.TFRecordDataset.

    Both checksums of each record are verified. Files are read in the order of the list, those of one glob in the byte order of their names.

    Args:
      filenames: a path, a glob, a list of them, or a dataset of paths (list_files).
      compression_type: None, "GZIP", "ZLIB" or "ZSTD".
      buffer_size: accepted, without effect.
      num_parallel_reads: the number of files whose records come by turns, one of each; None or AUTOTUNE:
        one file after another. All cores read and check in either case.
      on_damage: beyond tf.data, what a damaged record does: "fail", "skip_record" or "skip_shard".
      max_skipped: more damaged places in a pass are an error.
      max_skipped_fraction: a larger part of all records is an error.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Optional[str] = None,
        buffer_size: Optional[int] = None,
        num_parallel_reads: Optional[int] = None,
        name: Optional[str] = None,
        *,
        on_damage: str = "fail",
        max_skipped: Optional[int] = None,
        max_skipped_fraction: Optional[float] = None,
    ) -> None:
        check_unused(buffer_size=buffer_size)
        damage = damage_policy(on_damage, max_skipped, max_skipped_fraction)
        fields = [("compression", compression(compression_type)), ("damage", damage)]
        self._read("tfrecord", fields, filenames, num_parallel_reads, name)


class TextLineDataset(_Reader):
    """The lines of text files without their ends, one byte string each, as tf.data.TextLineDataset: every carriage return is dropped, also inside
    of a line.

    Args: as TFRecordDataset.
    """

    def __init__(
        self,
        filenames: Any,
        compression_type: Optional[str] = None,
        buffer_size: Optional[int] = None,
        num_parallel_reads: Optional[int] = None,
        name: Optional[str] = None,
    ) -> None:
        check_unused(buffer_size=buffer_size)
        fields = [("compression", compression(compression_type))]
        self._read("text_line", fields, filenames, num_parallel_reads, name)


class FixedLengthRecordDataset(_Reader):
    """Records of record_bytes bytes, one byte string each, as tf.data.FixedLengthRecordDataset. A file that does not end in a whole record is an
    error behind its last whole one, where TensorFlow's comes before the first.

    Args:
      record_bytes: at least 1.
      header_bytes, footer_bytes: to leave out at the beginning and at the end of each file.
      Others: as TFRecordDataset.
    """

    def __init__(
        self,
        filenames: Any,
        record_bytes: int,
        header_bytes: Optional[int] = None,
        footer_bytes: Optional[int] = None,
        buffer_size: Optional[int] = None,
        compression_type: Optional[str] = None,
        num_parallel_reads: Optional[int] = None,
        name: Optional[str] = None,
    ) -> None:
        check_unused(buffer_size=buffer_size)
        fields = [
            ("record_bytes", integer(record_bytes, "record_bytes")),
            ("header_bytes", optional(header_bytes, "header_bytes")),
            ("footer_bytes", optional(footer_bytes, "footer_bytes")),
            ("compression", compression(compression_type)),
        ]
        self._read("fixed_length_record", fields, filenames, num_parallel_reads, name)


class TarDataset(_Reader):
    """The samples of tar files as WebDataset lays them out, a dict of byte strings each. Not in tf.data.

    Members that follow each other and have one key are one sample. The key is the path up to the first dot of its last component; what
    is behind that dot is the extension: `a/0001.seg.png` is "seg.png" of the sample "a/0001". Members that are no regular files, that
    have no extension, or that describe the archive (`__meta__`) are passed over. ustar, GNU and pax headers are read; a sparse member
    is an error.

    Args:
      filenames: as TFRecordDataset.
      features: a list of extensions such as ["jpg", "cls"], or a dict of names and extensions. Several extensions, a list or joined by
        ";" as in "png;jpg", are tried in their order. Capitals count as small letters. "__key__" is the sample's key, "__url__" the
        path of its file.
      defaults: {name: bytes}, the values of features for samples without such a member; by default that is an error of the element.
      compression_type: None, "GZIP", "ZLIB" or "ZSTD"; by default what the files' names end with: .tar.gz, .tgz, .tar.zst, .tzst.
        Compressed files are read from the beginning on. Plain ones have an index, by which samples are found in any order.
      num_parallel_reads, on_damage, max_skipped, max_skipped_fraction: as TFRecordDataset. Damage is a header whose checksum does not hold.
    """

    def __init__(
        self,
        filenames: Any,
        features: Any,
        defaults: Optional[Mapping[str, bytes]] = None,
        compression_type: Optional[str] = None,
        num_parallel_reads: Optional[int] = None,
        name: Optional[str] = None,
        *,
        on_damage: str = "fail",
        max_skipped: Optional[int] = None,
        max_skipped_fraction: Optional[float] = None,
    ) -> None:
        columns = _tar_features(features, defaults or {})
        if compression_type is None and not isinstance(filenames, Dataset):
            compression_type = _tar_compression(files_of(filenames))
        fields = [
            ("feature", [_textproto.Message(*column) for column in columns.values()]),
            ("compression", compression(compression_type)),
            ("damage", damage_policy(on_damage, max_skipped, max_skipped_fraction)),
        ]
        self._read("tar", fields, filenames, num_parallel_reads, name, dict.fromkeys(columns))


def _tar_features(features, defaults):
    """The fields of each feature's message, by its name."""
    if isinstance(features, str):
        features = [features]
    named = dict(features) if isinstance(features, Mapping) else {extension: extension for extension in features}
    if not named:
        raise ValueError('features are extensions such as ["jpg", "cls"], or a dict of names and extensions; there are none')
    columns = {}
    for feature, extensions in named.items():
        listed = extensions.split(";") if isinstance(extensions, str) else list(extensions)
        for extension in listed:
            if not isinstance(extension, str) or "/" in extension or extension.startswith("."):
                raise ValueError(f'an extension is what is behind the first dot of a member\'s name, such as "jpg": {extension!r}')
        default = defaults.get(feature)
        if default is not None and not isinstance(default, (bytes, str)):
            raise TypeError(f"a default is bytes, as a member's data are: {default!r}")
        columns[feature] = [("name", feature), ("extension", listed), ("default_value", default)]
    unknown = [feature for feature in defaults if feature not in columns]
    if unknown:
        raise ValueError(f"defaults of what is no feature: {unknown}")
    return columns


def _tar_compression(paths):
    """As the names of all files say it."""
    endings = {".tar.gz": "GZIP", ".tgz": "GZIP", ".tar.zst": "ZSTD", ".tzst": "ZSTD"}
    found = {next((endings[end] for end in endings if path.lower().endswith(end)), None) for path in paths or []}
    if len(found) > 1:
        raise ValueError("the files' names end as those of different compressions: give compression_type, and a dataset for each")
    return found.pop() if found else None


class FilesDataset(Dataset):
    """Whole files, in the order of the list and those of one glob in the byte order of their paths: {"path": string, "bytes": string}. Not in tf.data.

    Args:
      filenames: a path, a glob, or a list of them.
      class_from_folder: adds "label" (int64) and "class_name" (string): the name of the folder that a file
        lies in, and its index among all those names that are there, as torchvision's ImageFolder has them. Where a split lacks a class,
        those behind it have other numbers than in the other splits: give class_names.
      class_names: with class_from_folder, the names of all classes, as Keras' image_dataset_from_directory has them: a label is the index
        in this list. A class may have no files; a file in a folder of another name is an error of its element.
    """

    def __init__(
        self, filenames: Any, class_from_folder: bool = False, name: Optional[str] = None, *, class_names: Optional[Sequence[str]] = None
    ) -> None:
        fields = [("files", files_of(filenames)), ("class_from_folder", bool(class_from_folder) or None)]
        names = ["path", "bytes"] + (["label", "class_name"] if class_from_folder else [])
        stages, structure = [Stage("files", fields, name)], {name: None for name in names}
        if class_names is not None:
            stages = Dataset(stages, structure).map(_numbered_by(_class_names(class_names, class_from_folder)))._stages
        super().__init__(stages, structure)


def _class_names(class_names, class_from_folder):
    if not class_from_folder:
        raise ValueError("class_names are the names of the folders that class_from_folder=True numbers")
    words = [class_names] if isinstance(class_names, (str, bytes)) else [os.fsdecode(word) for word in class_names]
    if isinstance(class_names, (str, bytes)) or not words or len(set(words)) < len(words):
        raise ValueError(f"class_names are a list of names that differ, not {class_names!r}")
    return words


def _numbered_by(class_names):
    return lambda element: {**element, "label": call("string_lookup", (element["class_name"], class_names), {}, "class_names")}


class CsvDataset(_Reader):
    """The records of files of comma-separated values, a tuple of scalars each, as tf.data.experimental.CsvDataset.

    Args:
      filenames: as TFRecordDataset.
      record_defaults: one for each column that is read: a dtype (float32, float64, int32, int64, string) where a value is
        required, or a value of that type, alone or in a list, that stands for a missing one.
      header: whether the first record of each file is left out.
      field_delim: one character.
      use_quote_delim: whether quotation marks around fields are removed.
      na_value: a text that stands for a missing value, besides the empty one.
      select_cols: which columns are read, rising; by default all.
      exclude_cols: instead of it, which are not.
      Others: as TFRecordDataset.
    """

    def __init__(
        self,
        filenames: Any,
        record_defaults: Any,
        compression_type: Optional[str] = None,
        buffer_size: Optional[int] = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Any = None,
        exclude_cols: Any = None,
        name: Optional[str] = None,
    ) -> None:
        check_unused(buffer_size=buffer_size)
        columns = [_csv_column(default) for default in record_defaults]
        if select_cols is not None and exclude_cols is not None:
            raise ValueError("select_cols and exclude_cols are not given together")
        if exclude_cols is not None:
            excluded = {integer(column, "a column of exclude_cols") for column in exclude_cols}
            total = len(columns) + len(excluded)
            select_cols = [column for column in range(total) if column not in excluded]
        selected = None if select_cols is None else [integer(column, "a column of select_cols") for column in select_cols]
        fields = [
            ("column", columns),
            ("header", True if header else None),
            ("field_delim", field_delim),
            ("use_quote_delim", None if use_quote_delim else False),
            ("na_value", na_value or None),
            ("select_col", selected),
            ("compression", compression(compression_type)),
        ]
        stage = Stage("csv", [("files", files_of(filenames)), *fields], name)
        Dataset.__init__(self, [stage], (None,) * len(columns))


def _csv_column(default):
    if isinstance(default, (list, tuple)):
        (default,) = default
    if isinstance(default, type) or isinstance(default, np.dtype) or default is _dtypes.string:
        dtype = _dtypes.as_dtype(default)
        return _textproto.Message(("dtype", "string" if dtype == _dtypes.string else np.dtype(dtype).name))
    if isinstance(default, (str, bytes)):
        return _textproto.Message(("dtype", "string"), ("string_value", default))
    value = np.asarray(default).reshape(-1)
    if value.size != 1 or value.dtype.kind not in "if":
        raise TypeError(f"a record default is a dtype, a number or a string, not {default!r}")
    # Python's numbers are TensorFlow's here, whose CSV files hold float32 and int32 unless they say otherwise.
    narrow = {"float64": "float32", "int64": "int32"}
    dtype = value.dtype.name if isinstance(default, (np.ndarray, np.generic)) else narrow[value.dtype.name]
    if value.dtype.kind == "i":
        return _textproto.Message(("dtype", dtype), ("int_value", int(value[0])))
    return _textproto.Message(("dtype", dtype), ("float_value", float(value[0])))
