"""The node of each Arrow type (_columns.py)."""

import numpy as np

from penstock._parquet._columns import FixedList, Lists, ListsOfLists, ListsOfStructs, Numbers, Strings, Struct

DECIMALS = ("float64", "int64")


def node_of(path, kind, decimals):
    """The node of a column.

    Args:
      path: its name, with those of the fields in it.
      kind: the Arrow type.
      decimals: what becomes of decimals, one of DECIMALS.

    Raises:
      TypeError: no tensor is made of it; says what to do.
    """
    import pyarrow as pa

    kinds = pa.types
    while isinstance(kind, pa.BaseExtensionType) or kinds.is_dictionary(kind):
        kind = kind.value_type if kinds.is_dictionary(kind) else kind.storage_type
    if kinds.is_boolean(kind):
        return Numbers(path, "bool", np.bool_)
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        return Numbers(path, str(kind), kind.to_pandas_dtype())
    if kinds.is_decimal(kind):
        if decimals == "int64" and kinds.is_decimal256(kind):
            raise TypeError(f"column {path!r} is {kind}, which int64 does not hold: decimals='float64'")
        way = "float64" if decimals == "float64" else "unscaled"
        return Numbers(path, str(kind), decimals, way)
    if kinds.is_temporal(kind):
        return Numbers(path, str(kind), np.int32 if kinds.is_date32(kind) or kinds.is_time32(kind) else np.int64, "integers")
    if _is_string(kind):
        return Strings(path, "string")
    if kinds.is_struct(kind):
        return Struct(path, {field.name: node_of(f"{path}.{field.name}", field.type, decimals) for field in kind})
    if kinds.is_fixed_size_list(kind):
        item = node_of(path, kind.value_type, decimals)
        if not isinstance(item, (Numbers, Strings, FixedList)):
            raise _no_tensor(path, kind)
        return FixedList(path, f"{item.said}[{kind.list_size}]", kind.list_size, item)
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_map(kind):
        return _list_of(path, kind, decimals)
    raise _no_tensor(path, kind)


def _is_string(kind):
    import pyarrow as pa

    tests = ("is_string", "is_large_string", "is_binary", "is_large_binary", "is_fixed_size_binary", "is_string_view", "is_binary_view")
    return any(getattr(pa.types, test)(kind) for test in tests if hasattr(pa.types, test))


def _list_of(path, kind, decimals):
    import pyarrow as pa

    inner = pa.struct([("key", kind.key_type), ("value", kind.item_type)]) if pa.types.is_map(kind) else kind.value_type
    item = node_of(path, inner, decimals)
    if type(item) is Struct:
        fields = {name: _lists(node, kind) for name, node in item.fields.items()}
        return ListsOfStructs(path, fields)
    if type(item) is Lists:
        return ListsOfLists(path, f"list<{item.said}>", item.item)
    return _lists(item, kind)


def _lists(item, kind):
    is_of_numbers = isinstance(item, Numbers) or isinstance(item, FixedList) and not item.specs()[0].dtype is _string()
    if not is_of_numbers:
        raise _no_tensor(item.path, kind)
    return Lists(item.path, f"list<{item.said}>", item)


def _string():
    from penstock._dtypes import string

    return string


def _no_tensor(path, kind):
    return TypeError(
        f"column {path!r} is {kind}, of which no tensor is made: leave it out by columns=, or make it anew as numbers, a string, a list of numbers, a list "
        "of lists of numbers, or a struct or list of structs of these; Dataset.from_generator takes whatever a Python function makes of it"
    )
