"""Arrow IPC files and streams."""

from __future__ import annotations

import os
from typing import Any, Optional

from penstock._dataset import Dataset
from penstock._dataset._arguments import integer
from penstock._dataset._arrow_features import arrow_source, features_of
from penstock._dataset._paths import files_of
from penstock._dataset._reading import damage_policy


class ArrowDataset(Dataset):
    """The rows of Arrow IPC files and streams, a dict of the features that are asked for. Not in tf.data.

    pyarrow, Hugging Face's datasets and Feather (version 2) write such files. Which of the two a file is its beginning tells. They are read in place: only the
    metadata of their record batches is read when the pipeline is created, so that the length is exact, and any row is found at once. Rows come in the order of the
    files; global_shuffle() permutes all of them.

    A column of numbers, dates or times becomes numbers, text and binary penstock.string; a list becomes an axis of any size, a fixed-size list one of its size; a
    dictionary is decoded; the fields of a struct are columns. Buffers may be compressed by zstd.

    Args:
      filenames: a path, a glob, or a list of them.
      features: a list of columns, or a dict of names and columns (penstock.ArrowFeature, or the column's name); by default all columns of the first file.
      rows: which rows, in which order, counted over all files: a list of numbers, or the path of an Arrow file of one int64 or uint64 column. By default all.
      on_damage: what a record batch does whose metadata is damaged, or that its file does not hold whole: "fail"; "skip_record" leaves it out, and in a stream all
        behind it, as nothing tells where the next one begins; "skip_shard" leaves out the rest of the file. It is found when the pipeline is created.
      max_skipped: more damaged places are an error.
    """

    def __init__(
        self,
        filenames: Any,
        features: Any = None,
        rows: Any = None,
        name: Optional[str] = None,
        *,
        on_damage: str = "fail",
        max_skipped: Optional[int] = None,
    ) -> None:
        stretches, row_file = None, None
        if isinstance(rows, (str, os.PathLike)):
            row_file = os.path.abspath(os.fspath(rows))
        elif rows is not None:
            stretches = [("row", [integer(row, "a number of rows") for row in rows])]
        super().__init__(*arrow_source(files_of(filenames), features_of(features), stretches, row_file, damage_policy(on_damage, max_skipped, None), name))
