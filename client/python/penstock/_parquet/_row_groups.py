"""Row groups as the tensors of their rows, in a worker process."""

import collections

import numpy as np

from penstock import _row
from penstock._parquet import _predicates
from penstock._parquet._columns import Null
from penstock._parquet._files import BadFile, identity_of, pyarrow

# Files that a process keeps open.
_MAX_OPEN = 32


class RowGroups:
    """Called with the number of a row group, or an array of them, gives the tensors of all their rows.

    Args:
      filesystem: pyarrow's.
      paths, identities: of the files.
      groups: (row groups, 3) of int64: the file's number, the row group's in it, and whether the predicate looks at its rows.
      nodes: from the names of columns to their nodes.
      filters: a predicate in pyarrow's form, or None.
      defaults: from the names of columns to what stands for null.
      shuffles: None: rows come in their order; "pass": those of one call in an order that each pass draws anew; "call": in one that follows from the
        call's row groups.
    """

    def __init__(self, filesystem, paths, identities, groups, nodes, filters, defaults, shuffles=None):
        self.filesystem, self.paths, self.identities, self.groups = filesystem, paths, identities, groups
        self.nodes, self.filters, self.defaults, self.shuffles = nodes, filters, defaults, shuffles
        self._open = collections.OrderedDict()
        # What messages call it.
        self.__qualname__ = "parquet"

    def __getstate__(self):
        return {**self.__dict__, "_open": collections.OrderedDict()}

    def shuffled(self, how):
        """The same with another value of `shuffles`."""
        return RowGroups(self.filesystem, self.paths, self.identities, self.groups, self.nodes, self.filters, self.defaults, how)

    def __call__(self, numbers):
        pa = pyarrow()
        tables = [self._table(int(number)) for number in np.atleast_1d(numbers)]
        table = tables[0] if len(tables) == 1 else pa.concat_tables(tables)
        if self.shuffles is not None:
            table = table.take(pa.array(self._generator(numbers).permutation(table.num_rows)))
        made = {}
        for name, node in self.nodes.items():
            made[name] = _nest(node.structure, iter(node.tensors(_joined(table.column(name)))))
        return made

    def _generator(self, numbers):
        if self.shuffles == "pass":
            return _row.rng()
        state = _row.key
        for number in np.atleast_1d(numbers).tolist():
            state = _row.mixed(state, number)
        return np.random.Generator(np.random.Philox(key=state))

    def _table(self, number):
        """The rows of a row group that meet the predicate, without nulls."""
        pa = pyarrow()
        file, group, filters = (int(value) for value in self.groups[number])
        path = self.paths[file]
        wanted = list(self.nodes)
        columns = wanted if not filters else list(dict.fromkeys([*wanted, *(name for case in self.filters for name, _, _ in case)]))
        try:
            table = self._file(file).read_row_group(group, columns=columns, use_threads=False)
        except BadFile as error:
            raise _row.BadData(str(error)) from None
        except FileNotFoundError:
            raise _row.BadData(f"{path} was there when the dataset was made, and is gone") from None
        except (pa.ArrowException, OSError) as error:
            raise _row.BadData(f"row group {group} of {path} is damaged, or of a kind that pyarrow {pa.__version__} does not read: {error}") from None
        if filters:
            try:
                table = _without_views(pa, table).filter(_predicates.expression(self.filters))
            except pa.ArrowException as error:
                raise _row.BadData(f"row group {group} of {path} holds values that the filters {_predicates.said(self.filters)} are not compared with: {error}") from None
        table = table.select(wanted)
        filled = []
        for name, node in self.nodes.items():
            try:
                filled.append(node.filled(_joined(table.column(name)), self.defaults.get(name)))
            except Null as null:
                of = " of those that meet the filters" if filters else ""
                raise _row.BadData(
                    f"column {null.path!r} is null in row {null.row}{of} of row group {group} of {path}: say what stands for null (defaults={{{name!r}: …}}), "
                    "or leave such rows out by filters"
                ) from None
        return pa.table(filled, names=wanted)

    def _file(self, number):
        """The open file, which is the one that the dataset was made of."""
        pa = pyarrow()
        file = self._open.get(number)
        if file is not None:
            self._open.move_to_end(number)
            return file
        path = self.paths[number]
        source = self.filesystem.open_input_file(path)
        found = identity_of(source, path)
        if found != self.identities[number]:
            raise BadFile(
                f"{path} has changed since the dataset was made: it had {self.identities[number].size} bytes and another footer, and has {found.size}: make the "
                "dataset anew"
            )
        is_far = not isinstance(self.filesystem, pa.fs.LocalFileSystem)
        file = self._open[number] = pa.parquet.ParquetFile(source, pre_buffer=is_far, page_checksum_verification=True)
        while len(self._open) > _MAX_OPEN:
            self._open.popitem(last=False)[1].close()
        return file


def _without_views(pa, table):
    """The table with other types for views of strings, which Arrow does not filter."""
    for number, field in enumerate(table.schema):
        if str(field.type) in ("string_view", "binary_view"):
            table = table.set_column(number, field.name, table.column(number).cast(pa.large_string() if str(field.type) == "string_view" else pa.large_binary()))
    return table


def _joined(column):
    """A column of a table as one array."""
    if column.num_chunks == 1:
        return column.chunk(0)
    pa = pyarrow()
    if column.num_chunks and (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        # Chunks end where offsets of 32 bits do.
        column = column.cast(pa.large_binary())
    joined = column.combine_chunks()
    return joined.chunk(0) if hasattr(joined, "chunk") else joined


def _nest(structure, tensors):
    if structure is None:
        return next(tensors)
    return {name: _nest(inner, tensors) for name, inner in structure.items()}
