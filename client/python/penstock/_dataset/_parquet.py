"""Dataset.parquet: the rows of Parquet files.

    parquet, as the daemon reads files of the common subset ─► rows

Of other files, and for what only pyarrow does:

    range(row groups) ─► row groups, in worker processes ─► unbatch ─► rows
    range(row groups) ─► shuffle ─► batch(k) ─► k row groups, whose rows are permuted ─► unbatch ─► rows        global_shuffle

There a row group is what a worker process decodes at once, and its tensors go to the daemon as whole columns. So a resume decodes the row group, or those k,
that it was in, and nothing in front.
"""

from __future__ import annotations

import hashlib
import re

import numpy as np

from penstock import _errors, _structure
from penstock._dataset._arguments import at_least, integer, optional
from penstock._dataset._arrow_features import ArrowFeature
from penstock._dataset._cardinality import UNKNOWN
from penstock._dataset._chain import of_stages
from penstock._dataset._python import Lazily, fields_of, output_of, stage_of
from penstock._dtypes import string
from penstock._parquet import _files, _native, _predicates
from penstock._parquet._columns import Lists, ListsOfLists, Numbers, Strings, Struct
from penstock._parquet._row_groups import RowGroups
from penstock._parquet._types import DECIMALS, node_of
from penstock._spec._lines import user_line
from penstock._spec import _textproto
from penstock._spec._stage import Seed, Stage, Trait, declare
from penstock._tracing._language import call

# As unbatch_rows.cc has it.
_MAX_ROWS = 1 << 28
# Row groups that global_shuffle takes together, where nobody says how many: as many as hold this, between these bounds.
_WINDOW_BYTES = 128 << 20
_WINDOW = 2, 64


READERS = ("auto", "daemon", "pyarrow")

declare("parquet", Trait.GIVES_NO_PATHS)


def parquet(paths, columns, filters, defaults, decimals, filesystem, num_shards, shard_index, reader, name, options, range_of):
    """As Dataset.parquet; `range_of` is Dataset.range."""
    if reader not in READERS:
        raise ValueError(f"reader is one of {', '.join(READERS)}, not {reader!r}")
    if decimals not in DECIMALS:
        raise ValueError(f"decimals become one of {', '.join(DECIMALS)}, not {decimals!r}")
    if (num_shards is None) != (shard_index is None):
        raise TypeError("num_shards and shard_index stand together")
    if num_shards is not None and not 0 <= integer(shard_index, "shard_index") < integer(num_shards, "num_shards"):
        raise ValueError(f"shard_index is from 0 to num_shards - 1: {shard_index} of {num_shards}")
    found = _files.matching(paths, filesystem)
    filesystem, names = _files.filesystem_of(found, filesystem)
    footers = _files.footers(filesystem, names)
    nodes = _nodes(footers, columns, decimals)
    cases = None if filters is None else _checked(filters, footers, decimals)
    defaults = _defaults(defaults, nodes, footers[0])
    groups, rows, largest = _row_groups(footers, cases)
    if num_shards is not None:
        groups, rows = groups[shard_index::num_shards], rows[shard_index::num_shards]
    row_groups = RowGroups(filesystem, names, [footer.identity for footer in footers], np.array(groups, np.int64).reshape(-1, 3), nodes, cases, defaults)
    given = list(options)
    version = options.pop("version", "")
    # Of other files a cursor says nothing.
    said = cases and _predicates.said(cases)
    told = repr([version, [(path, footer.identity.digest) for path, footer in zip(names, footers)], list(nodes), said, defaults, decimals, num_shards, shard_index])
    made = _Made(row_groups, nodes, hashlib.blake2b(told.encode(), digest_size=8).hexdigest(), options, range_of, name, user_line())
    made.rows = UNKNOWN if any(looks for _, _, looks in groups) else sum(rows)
    made.window = max(_WINDOW[0], min(_WINDOW[1], _WINDOW_BYTES // max(largest, 1)))
    made.why = _why_pyarrow(reader, filesystem, given, footers, nodes, groups, made)
    if made.why is None:
        return made.by_daemon(footers, groups)
    if reader == "daemon":
        raise ValueError(f"reader='daemon': pyarrow has to read these files, as {made.why}")
    return made.in_order()


def _why_pyarrow(reader, filesystem, given, footers, nodes, groups, made):
    """Why pyarrow reads these files in worker processes; None where the daemon does it by itself."""
    if reader == "pyarrow":
        return "reader='pyarrow' says so"
    if not isinstance(filesystem, _files.pyarrow().fs.LocalFileSystem):
        return "the files are not on this machine"
    if given:
        return f"{given[0]}= is about worker processes"
    if any(looks for _, _, looks in groups):
        return "filters= has to look at rows"
    if why := _native.why_not(footers, nodes):
        return why
    schema = footers[0].schema
    made.fills = {name: _native.default_of(nodes[name], schema.field(name).type, value) for name, value in made.reader.defaults.items()}
    large = next((name for name, value in made.fills.items() if isinstance(value, int) and value >= 1 << 63), None)
    return None if large is None else f"the default of column {large!r} is more than 2^63 - 1"


class _Made:
    """What parquet() has found out, of which a dataset of each order is made. It is pickled with the dataset."""

    def __init__(self, reader, nodes, version, options, range_of, name, line):
        self.reader, self.nodes, self.version, self.options = reader, nodes, version, options
        self.range_of, self.name, self.line = range_of, name, line

    @property
    def said(self):
        """Who reads the files, for repr()."""
        return "read by the daemon" if self.why is None else f"read by pyarrow, as {self.why}"

    def by_daemon(self, footers, groups):
        features = {name: _feature(name, node, self.fills.get(name)) for name, node in self.nodes.items()}
        chosen = _native.stretches(footers, groups)
        fields = [("files", self.reader.paths), ("feature", [feature._message(name) for name, feature in features.items()])]
        if chosen is not None:
            starts, counts = zip(*chosen) if chosen else ((0,), (0,))
            fields.append(("rows", _textproto.Message(("start", list(starts)), ("count", list(counts)))))
        fields.append(("footer_sum", [footer.identity.sum for footer in footers]))
        dataset = of_stages([Stage("parquet", fields, self.name, self.line)], {name: None for name in features}, self.rows)
        dataset._shuffled = self
        return dataset

    def in_order(self):
        dataset = self._rows_of(self.range_of(len(self.reader.groups)), self.reader, [])
        dataset._shuffled = self
        return dataset

    def __call__(self, seed, reshuffle, row_groups, name, options):
        """global_shuffle directly behind it."""
        reshuffle = True if reshuffle is None else bool(reshuffle)
        window = self.window if row_groups is None else at_least(1, row_groups, "row_groups")
        numbers = self.range_of(len(self.reader.groups))
        drawn = Seed(optional(seed, "seed"), reshuffle)
        if len(self.reader.groups) > 1:
            fields = [("buffer_size", len(self.reader.groups)), ("seed", drawn), ("reshuffle_each_iteration", None if reshuffle else False)]
            numbers = numbers._then("shuffle", fields, cardinality=numbers._count, name=name)
        dataset = self._rows_of(numbers.batch(window), self.reader.shuffled("pass" if reshuffle else "call"), [("seed", drawn)])
        return dataset.with_options(options)

    def _rows_of(self, numbers, reader, seeds):
        """The rows of the row groups of those numbers, or of batches of them."""
        _, common, of_draws = fields_of("parquet", reader, None, self.version, seeds=False, **self.options)
        if seeds:
            of_draws = [*seeds, *(field for field in of_draws if field[0] != "seed")]
        structure = {name: node.structure for name, node in self.nodes.items()}
        specs = [spec for node in self.nodes.values() for spec in node.specs()]
        outputs = [output_of(path, spec) for path, spec in zip(_structure.paths(structure), specs)]
        fields = [*common, *of_draws, ("output", outputs), ("structure", Lazily(lambda: _structure.to_json(structure)))]
        stages = [stage_of("python", fields, None, self.line), Stage("unbatch", [("block_size", 1)], self.name, self.line)]
        dataset = numbers._like((*numbers._stages, *stages), structure)
        if any(map(_is_packed, self.nodes.values())):
            dataset = dataset.map(self._unpacked)
        return of_stages(dataset._stages, dataset._known_structure, self.rows, dataset._options)

    def _unpacked(self, row):
        _, parts = _structure.flatten(row, lambda value: not isinstance(value, dict), "a row")
        parts = iter(parts)
        return {name: node.unpacked(parts, _decoded) for name, node in self.nodes.items()}


def _feature(name, node, fill):
    column = re.sub(r"([.\\])", r"\\\1", name)
    dtype = string if isinstance(node, Strings) else node.dtype
    return ArrowFeature(None if column == name else column, dtype, default_value=fill)


def _is_packed(node):
    return isinstance(node, (Lists, ListsOfLists)) or isinstance(node, Struct) and any(map(_is_packed, node.fields.values()))


def _decoded(text, spec):
    """The numbers of a list, of its bytes."""
    stored = np.dtype(np.uint8) if spec.dtype == np.bool_ else np.dtype(spec.dtype)
    values = call("decode_raw", (text, stored), {})
    if spec.dtype == np.bool_:
        values = values != 0
    sizes = spec.shape[1:]
    return np.reshape(values, [-1, *sizes]) if sizes else values


# --- checks -------------------------------------------------------------------------------------


def _nodes(footers, columns, decimals):
    """The nodes of the columns by their names, which all files have alike."""
    first = footers[0]
    names = first.schema.names
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise _errors.DataLossError(f"{first.path} has two columns {twice!r}")
    if columns is None:
        wanted = names
    else:
        wanted = [columns] if isinstance(columns, str) else list(columns)
        if not wanted or len(set(wanted)) < len(wanted):
            raise ValueError(f"columns are one or more names, each once: {wanted!r}")
        for name in wanted:
            if name not in names:
                raise ValueError(f"there is no column {name!r} in {first.path}; there are {', '.join(map(str, names))}")
    nodes = {name: node_of(name, first.schema.field(name).type, decimals) for name in wanted}
    for footer in footers[1:]:
        for name, node in nodes.items():
            _check_same(first, footer, name, node.said, decimals, "columns")
    return nodes


def _check_same(first, footer, name, wanted, decimals, argument):
    """Raises DataLossError where a file's column is not as it is in the first one; `argument` has chosen it."""
    found = footer.schema.names.count(name)
    if found > 1:
        raise _errors.DataLossError(f"{footer.path} has two columns {name!r}")
    if not found:
        raise _errors.DataLossError(f"the files have different columns: {first.path} has {name!r}, and {footer.path} has none; choose others by {argument}=")
    said = _said(name, footer.schema.field(name).type, decimals)
    if said != wanted:
        raise _errors.DataLossError(f"the files have different columns: {name!r} is {wanted} in {first.path} and {said} in {footer.path}")


def _said(name, kind, decimals):
    try:
        return node_of(name, kind, decimals).said
    except TypeError:
        return str(kind)


def _checked(filters, footers, decimals):
    """The predicate, which the columns' types take."""
    pa = _files.pyarrow()
    first = footers[0]
    cases = _predicates.checked(filters, first.schema.names)
    for name in _predicates.columns_of(cases):
        kind = first.schema.field(name).type
        said = _said(name, kind, decimals)
        if not isinstance(node_of(name, kind, decimals), (Numbers,)) and said != "string":
            raise TypeError(f"filters: column {name!r} is {kind}; predicates are about numbers, times and strings")
        for footer in footers[1:]:
            _check_same(first, footer, name, said, decimals, "filters")
    cases = _predicates.in_types(cases, first.schema)
    try:
        # Of no rows kernels are not asked whether they take the types.
        row = pa.Table.from_arrays([pa.nulls(1, field.type) for field in first.schema], names=first.schema.names)
        row.select(_predicates.columns_of(cases)).filter(_predicates.expression(cases))
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"filters: the columns' types do not take {_predicates.said(cases)}: {error}") from None
    return cases


def _defaults(defaults, nodes, footer):
    """From the names of columns to what stands for null there."""
    defaults = dict(defaults or {})
    pa = _files.pyarrow()
    for name, value in defaults.items():
        if name not in nodes:
            raise ValueError(f"defaults: there is no column {name!r} among those that are read: {', '.join(nodes)}")
        _try(nodes[name], pa.array([None], footer.schema.field(name).type), name, value)
    return defaults


def _try(node, null, name, value):
    pa = _files.pyarrow()
    try:
        node.filled(null, value)
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise TypeError(f"the default of column {name!r}, {node.said}, cannot be {value!r}: {error}") from None
    except Exception as error:
        raise TypeError(f"the default of column {name!r}, {node.said}, leaves out a field: {error}") from None


def _row_groups(footers, cases):
    """Of those that may have rows which meet the predicate: [file, row group, whether its rows have to be looked at], how many rows each has, and the bytes of
    the largest, not compressed."""
    groups, rows, largest = [], [], 0
    for number, footer in enumerate(footers):
        found = None if cases is None else _predicates.decided(cases, footer, *_flat(footer))
        for place in range(footer.metadata.num_row_groups):
            group = footer.metadata.row_group(place)
            if group.num_rows == 0:
                continue
            if group.num_rows > _MAX_ROWS:
                raise _errors.DataLossError(f"row group {place} of {footer.path} has {group.num_rows} rows, more than {_MAX_ROWS}: write smaller ones")
            if found is not None and found[place] == _predicates.NONE:
                continue
            groups.append([number, place, int(found is not None and found[place] == _predicates.SOME)])
            rows.append(group.num_rows)
            largest = max(largest, group.total_byte_size)
    return groups, rows, largest


def _flat(footer):
    """From the names of columns that are not nested to their numbers in a row group; and the names of those that may hold NaN."""
    schema = footer.metadata.schema
    places, floats = {}, set()
    for place in range(len(schema)):
        column = schema.column(place)
        if column.path == column.name and column.max_repetition_level == 0:
            places[column.name] = place
            if column.physical_type in ("FLOAT", "DOUBLE") or str(column.logical_type) == "Float16":
                floats.add(column.name)
    return places, floats


