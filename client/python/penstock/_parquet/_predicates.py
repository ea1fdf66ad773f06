"""What the statistics of a row group say of a predicate: that none of its rows meets it, that all do, or nothing.

A predicate is pyarrow's: a list of (column, op, value), all of which a row meets; or a list of such lists, one of which it meets. Null meets none.

Bounds are compared as rows are, by pyarrow and in the column's type: Python compares a decimal with 0.1, or a float32, otherwise, and a nanosecond not at all.
"""

import functools

import numpy as np

from penstock._parquet._files import pyarrow

NONE, SOME, ALL = range(3)

OPS = ("=", "==", "!=", "<", ">", "<=", ">=", "in", "not in")


def checked(filters, names):
    """The predicate as a list of lists of triples.

    Args:
      names: of the columns that there are.
    """
    if not isinstance(filters, (list, tuple)):
        raise TypeError(f"filters are a list of (column, op, value), or a list of such lists, not a {type(filters).__name__}")
    cases = list(filters)
    if not cases:
        raise ValueError("filters is an empty list: leave it out, or name a column, as in [('year', '>=', 2020)]")
    if _is_triple(cases[0]):
        cases = [cases]
    for case in cases:
        if not isinstance(case, (list, tuple)) or not case:
            raise TypeError(f"filters: expected a list of (column, op, value), found {case!r}")
        for triple in case:
            if not _is_triple(triple):
                raise TypeError(f"filters: expected (column, op, value), found {triple!r}")
            name, op, value = triple
            if name not in names:
                raise ValueError(f"filters: there is no column {name!r}; there are {', '.join(names)}")
            if op not in OPS:
                raise ValueError(f"filters: the op of column {name!r} is one of {', '.join(OPS)}, not {op!r}")
            if op in ("in", "not in") and not isinstance(value, (list, tuple, set, frozenset)):
                raise TypeError(f"filters: {op!r} of column {name!r} takes a list of values, not a {type(value).__name__}")
            if value is None:
                raise ValueError(f"filters: column {name!r} is compared with None, and null meets no predicate")
            if op in ("in", "not in") and any(inner is None for inner in value):
                raise ValueError(f"filters: the list of column {name!r} has a None, and null meets no predicate: leave it out")
    return [[_settled(*triple) for triple in case] for case in cases]


def _settled(name, op, value):
    """A triple that reads the same in every process: sets have no order."""
    return name, op, sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value


def _is_triple(value):
    return isinstance(value, (list, tuple)) and len(value) == 3 and isinstance(value[0], str) and isinstance(value[1], str)


def said(cases):
    """The predicate as a text, which is the same in every process."""
    pa = pyarrow()

    def text(value):
        if isinstance(value, pa.Scalar):
            # Its repr() fails where Python's times are too coarse.
            return f"{value.type} {value.cast(pa.string()).as_py()}"
        return f"[{', '.join(map(text, value))}]" if isinstance(value, (list, tuple)) else repr(value)

    return " or ".join(f"[{', '.join(f'({name!r}, {op!r}, {text(value)})' for name, op, value in case)}]" for case in cases)


def columns_of(cases):
    """The names of the columns, each once, in order."""
    return list(dict.fromkeys(name for case in cases for name, _, _ in case))


def expression(cases):
    """The predicate as an Expression of pyarrow's."""
    pa = pyarrow()
    return functools.reduce(lambda a, b: a | b, (functools.reduce(lambda a, b: a & b, (_of_triple(pa, *triple) for triple in case)) for case in cases))


def _of_triple(pa, name, op, value):
    meets = pa.parquet.filters_to_expression([(name, op, value)])
    # Null is in no list, so that it would meet this.
    return meets & pa.compute.field(name).is_valid() if op == "not in" else meets


class Bounds:
    """What the statistics of a file's row groups say of one column.

    Args:
      footer: of the file.
      name: of the column.
      place: its number in a row group; None where it is nested.
      has_nan: whether it may hold NaN, of which bounds tell nothing.
    """

    def __init__(self, footer, name, place, has_nan):
        pa = pyarrow()
        self.name, self.has_nan = name, has_nan
        self.kind = _plain(pa, footer.schema.field(name).type)
        count = footer.metadata.num_row_groups
        lows, highs = [None] * count, [None] * count
        self.only_nulls, self.no_nulls = np.zeros(count, bool), np.zeros(count, bool)
        for number in range(count if place is not None else 0):
            group = footer.metadata.row_group(number)
            statistics = group.column(place).statistics
            if statistics is None:
                continue
            if statistics.has_null_count:
                self.only_nulls[number] = statistics.null_count == group.num_rows
                self.no_nulls[number] = statistics.null_count == 0
            if statistics.has_min_max:
                lows[number], highs[number] = self._bounds(pa, statistics)
        self.lows, self.highs = (pa.array(bounds, self._stored(pa)).cast(self.kind) for bounds in (lows, highs))
        self.is_known = np.array([low is not None for low in lows], bool)

    def _stored(self, pa):
        """The type that bounds come in: nanoseconds as numbers, which Python's times are too coarse for."""
        return pa.int64() if _is_of_nanoseconds(self.kind) else self.kind

    def _bounds(self, pa, statistics):
        """The lowest and the highest value, or None where they are none of the column's type."""
        try:
            if not _is_of_nanoseconds(self.kind):
                found = statistics.min, statistics.max
            elif "nanoseconds" in str(statistics.logical_type):
                found = statistics.min_raw, statistics.max_raw
            else:
                return None, None
            pa.array(found, self._stored(pa))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            return None, None
        # Some writers have NaN there.
        return found if all(bound == bound for bound in found) else (None, None)

    def decided(self, op, value):
        """NONE, SOME or ALL of each row group."""
        pa = pyarrow()
        try:
            found = self._between(pa, op, value)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            # Looking at the rows tells.
            found = np.full(len(self.is_known), SOME)
        if self.has_nan:
            # NaN lies within no bounds, and differs from everything.
            found = np.where((found == ALL) | (op in ("!=", "not in")), SOME, found)
        found = np.where(self.is_known, found, SOME)
        found = np.where((found == ALL) & ~self.no_nulls, SOME, found)
        return np.where(self.only_nulls, NONE, found)

    def _between(self, pa, op, value):
        if op in ("!=", "not in"):
            # NONE and ALL change places.
            return 2 - self._between(pa, "=" if op == "!=" else "in", value)
        if op in ("<", "<="):
            return _of_two(self._meet(pa, self.highs, op, value), self._meet(pa, self.lows, op, value))
        if op in (">", ">="):
            return _of_two(self._meet(pa, self.lows, op, value), self._meet(pa, self.highs, op, value))
        if op == "in":
            same = np.asarray(pa.compute.equal(self.lows, self.highs).fill_null(False))
            return _of_two(same & self._meet(pa, self.lows, op, value), self._may_hold(pa, list(value)))
        return _of_two(self._meet(pa, self.lows, op, value) & self._meet(pa, self.highs, op, value), self._holds(pa, value, value))

    def _may_hold(self, pa, values):
        """Whether one of a list's values may be there."""
        if not values:
            return np.zeros(len(self.is_known), bool)
        given = pa.array(values)
        forms = [given]
        if given.type != self.kind:
            # A list is compared in the column's type, where its values have that.
            forms.append(given.cast(self.kind, safe=False))
        found = np.zeros(len(self.is_known), bool)
        for form in forms:
            if len(form) > _MAX_VALUES:
                if any(one != one for one in values):
                    return np.ones(len(self.is_known), bool)
                ends = pa.compute.min_max(form)
                found |= self._holds(pa, ends["min"], ends["max"])
                continue
            for one in form:
                found |= self._holds(pa, one, one)
        return found

    def _holds(self, pa, low, high):
        """Whether bounds and these meet."""
        return ~(self._meet(pa, self.highs, "<", low) | self._meet(pa, self.lows, ">", high))

    def _meet(self, pa, bounds, op, value):
        """Which of the bounds meet it."""
        other = "" if self.name else "number"
        table = pa.Table.from_arrays([bounds, pa.array(np.arange(len(bounds)))], names=[self.name, other])
        found = np.zeros(len(bounds), bool)
        found[table.filter(_of_triple(pa, self.name, op, value)).column(1).to_numpy()] = True
        return found


# Values of a list that are looked at one by one.
_MAX_VALUES = 64


def _of_two(all_meet, some_meet):
    return np.where(all_meet, ALL, np.where(some_meet, SOME, NONE))


def _plain(pa, kind):
    while isinstance(kind, pa.BaseExtensionType) or pa.types.is_dictionary(kind):
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind.storage_type
    return kind


def _is_of_nanoseconds(kind):
    return getattr(kind, "unit", None) == "ns"


def decided(cases, footer, places, floats):
    """NONE, SOME or ALL rows of each row group of a file.

    Args:
      places: from the names of columns to their numbers in a row group; those that are nested have none.
      floats: the names of those columns that may hold NaN.
    """
    bounds = {name: Bounds(footer, name, places.get(name), name in floats) for name in columns_of(cases)}
    return np.max([np.min([bounds[name].decided(op, value) for name, op, value in case], axis=0) for case in cases], axis=0)
