"""What the statistics of a row group say of a predicate: that none of its rows meets it, that all do, or nothing.

A predicate is pyarrow's: a list of (column, op, value), all of which a row meets; or a list of such lists, one of which it meets. Null meets none.
"""

from penstock import _errors

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
    return [[tuple(triple) for triple in case] for case in cases]


def _is_triple(value):
    return isinstance(value, (list, tuple)) and len(value) == 3 and isinstance(value[0], str) and isinstance(value[1], str)


def columns_of(cases):
    """The names of the columns, each once, in order."""
    return list(dict.fromkeys(name for case in cases for name, _, _ in case))


def decided(cases, group, places, floats):
    """NONE, SOME or ALL rows of a row group.

    Args:
      group: pyarrow's metadata of it.
      places: from the names of columns to their numbers in a row group; those that are nested have none.
      floats: the names of those columns that may hold NaN, of which bounds tell nothing.
    """
    found = [_all_of([_of_one(triple, group, places, floats) for triple in case]) for case in cases]
    return ALL if ALL in found else SOME if SOME in found else NONE


def _all_of(found):
    return min(found)


def _of_one(triple, group, places, floats):
    name, op, value = triple
    if name not in places:
        return SOME
    column = group.column(places[name])
    statistics = column.statistics
    if statistics is None:
        return SOME
    nulls = statistics.null_count if statistics.has_null_count else None
    if nulls is not None and nulls == group.num_rows:
        return NONE
    if not statistics.has_min_max:
        return SOME
    try:
        found = _between(statistics.min, statistics.max, op, value)
    except TypeError as error:
        raise _errors.InvalidArgumentError(f"filters: column {name!r} holds values such as {statistics.min!r}, compared with {value!r}: {error}") from None
    if name in floats and (found == ALL or op in ("!=", "not in")):
        # NaN lies within no bounds, and differs from everything.
        return SOME
    return SOME if found == ALL and nulls != 0 else found


def _between(low, high, op, value):
    """Of values of which the lowest and the highest are known, or bounds of these."""
    if op in ("=", "=="):
        return NONE if value < low or value > high else ALL if low == value == high else SOME
    if op == "!=":
        return (ALL, SOME, NONE)[_between(low, high, "=", value)]
    if op == "<":
        return ALL if high < value else SOME if low < value else NONE
    if op == "<=":
        return ALL if high <= value else SOME if low <= value else NONE
    if op == ">":
        return ALL if low > value else SOME if high > value else NONE
    if op == ">=":
        return ALL if low >= value else SOME if high >= value else NONE
    found = max((_between(low, high, "=", inner) for inner in value), default=NONE)
    return found if op == "in" else (ALL, SOME, NONE)[found]
