"""Which Parquet files the daemon reads by itself, without worker processes and pyarrow: those of the subset that io/parquet of the daemon knows.

A reason why not is a text that follows "pyarrow reads it, as …".
"""

import re

import numpy as np

from penstock._parquet._columns import Numbers, Strings

CODECS = {"UNCOMPRESSED", "SNAPPY", "GZIP", "ZSTD", "LZ4"}
# BIT_PACKED is said of levels that there are none of.
_ENCODINGS = {"PLAIN", "RLE", "BIT_PACKED", "RLE_DICTIONARY", "PLAIN_DICTIONARY", "DELTA_BINARY_PACKED", "DELTA_LENGTH_BYTE_ARRAY", "BYTE_STREAM_SPLIT"}
# Column chunks of a file that are looked at, about: each takes some microseconds. One of another encoding is an error when it is read.
_LOOKS = 4096
_DTYPES = {"BOOLEAN": np.bool_, "INT32": np.int32, "INT64": np.int64, "FLOAT": np.float32, "DOUBLE": np.float64}


def why_not(footers, nodes):
    """Why the daemon does not read the columns of these files by itself; None where it does."""
    for footer in footers:
        places = _places(footer)
        for name, node in nodes.items():
            why = _of_type(footer, places, name, node) or _of_chunks(footer, places[name], len(nodes))
            if why is not None:
                return f"{why} ({footer.path})"
    return None


def default_of(node, kind, value):
    """What stands for null in a column of that Arrow type, as the daemon takes it: a number, a bool or bytes."""
    import pyarrow as pa

    filled = node.filled(pa.array([None], kind), value)
    if isinstance(node, Strings):
        return filled[0].as_py()
    return node.values(filled)[0].item()


def stretches(footers, groups):
    """The rows of row groups, [file, row group, …] each, over all files: where each stretch starts, and how many it has; None where they are all."""
    firsts, total = [], 0
    for footer in footers:
        first = []
        for place in range(footer.metadata.num_row_groups):
            first.append((total, footer.metadata.row_group(place).num_rows))
            total += first[-1][1]
        firsts.append(first)
    found = []
    for file, place, *_ in groups:
        start, count = firsts[file][place]
        if found and sum(found[-1]) == start:
            found[-1] = (found[-1][0], found[-1][1] + count)
        else:
            found.append((start, count))
    return None if found == [(0, total)] or total == 0 else found


def _places(footer):
    """From the names of columns that are not nested to their numbers in a row group."""
    schema = footer.metadata.schema
    return {schema.column(place).path: place for place in range(len(schema)) if schema.column(place).max_repetition_level == 0}


def _of_type(footer, places, name, node):
    place = places.get(name)
    if place is None or not isinstance(node, (Numbers, Strings)):
        return f"column {name!r} is nested"
    column = footer.metadata.schema.column(place)
    if column.max_definition_level > 1:
        return f"column {name!r} is nested"
    if isinstance(node, Strings):
        return None if column.physical_type in ("BYTE_ARRAY", "FIXED_LEN_BYTE_ARRAY") else f"column {name!r} is {column.physical_type}"
    if node.way not in ("as is", "integers") or node.dtype != _dtype_of(column):
        return f"column {name!r} is {node.said}, stored as {column.physical_type}"
    return None


def _dtype_of(column):
    """What the daemon makes of a column of numbers; None where it makes nothing."""
    kind = column.logical_type
    if column.physical_type == "FIXED_LEN_BYTE_ARRAY":
        return np.dtype(np.float16) if kind.type == "FLOAT16" else None
    found = _DTYPES.get(column.physical_type)
    if found is None or kind.type == "DECIMAL" or column.converted_type == "INTERVAL":
        return None
    if kind.type == "INT":
        bits, is_signed = re.fullmatch(r"Int\(bitWidth=(\d+), isSigned=(\w+)\)", str(kind)).groups()
        # Shorter ones are stored in 32 bits.
        if (int(bits) == 64) != (column.physical_type == "INT64"):
            return None
        return np.dtype(f"{'' if is_signed == 'true' else 'u'}int{bits}")
    return np.dtype(found)


def _of_chunks(footer, place, columns):
    """Of the column in each row group; of very many, in some."""
    groups = footer.metadata.num_row_groups
    for group in range(0, groups, max(1, groups * columns // _LOOKS)):
        chunk = footer.metadata.row_group(group).column(place)
        name = chunk.path_in_schema
        if chunk.file_path:
            return f"column {name!r} stands in another file"
        if chunk.compression not in CODECS or chunk.compression == "LZ4" and not _is_raw(footer):
            return f"column {name!r} is compressed by {chunk.compression}"
        others = sorted(set(chunk.encodings) - _ENCODINGS)
        if others:
            return f"column {name!r} is encoded by {others[0]}"
        if chunk.physical_type == "FIXED_LEN_BYTE_ARRAY" and "BYTE_STREAM_SPLIT" in chunk.encodings and footer.metadata.schema.column(place).logical_type.type != "FLOAT16":
            return f"column {name!r} is encoded by BYTE_STREAM_SPLIT"
    return None


def _is_raw(footer):
    """Whether LZ4 is without Hadoop's frames, which pyarrow calls alike: its own writer made none for long."""
    made = re.match(r"parquet-cpp-arrow version (\d+)", footer.metadata.created_by or "")
    return made is not None and int(made[1]) >= 8
