"""What a cursor says, without Protocol Buffers (proto/penstock/v1/cursor.proto)."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple

_HEADER_BYTES = 8
# What stands in front of the cursor of a consumer with batches of its own size (client/c/own_batches.cc).
_OWN_MAGIC, _OWN_BYTES = b"PNSTKPRT", 32
_FINGERPRINT = 3


class Field(NamedTuple):
    number: int
    value: Any  # an int, or bytes


def _varint(data, at):
    shift = value = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _fields(data):
    """The fields of a message of Protocol Buffers: varints, 64 bits as bytes, and bytes."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        if key & 7 == 0:
            value, at = _varint(data, at)
        else:
            size = 8
            if key & 7 == 2:
                size, at = _varint(data, at)
            value, at = data[at : at + size], at + size
        yield Field(key >> 3, value)


def fields(cursor: bytes) -> List[Field]:
    """Those of a Cursor that the daemon has made, or a consumer with batches of its own size."""
    begin = _OWN_BYTES if cursor.startswith(_OWN_MAGIC) else 0
    return list(_fields(cursor[begin + _HEADER_BYTES :]))


def fingerprint(of_cursor: List[Field]) -> Dict[int, Any]:
    """The fields of its Fingerprint, by their numbers."""
    message = {field.number: field.value for field in of_cursor}
    return {field.number: field.value for field in _fields(message.get(_FINGERPRINT, b""))}
