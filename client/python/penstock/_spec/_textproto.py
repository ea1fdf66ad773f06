"""Protobuf's text format, as far as specs need it: fields in order, written on one line each message.

A message is a list of pairs of a field's name and its value: a bool, an int, a float, a str, bytes, a
Message, or a list or tuple of these (a repeated field). None leaves a field out.
"""

import math


class Message:
    """A message inside another one."""

    __slots__ = ("fields",)

    def __init__(self, *fields):
        self.fields = fields


class Bare(str):
    """A word that stands without quotes: a value of an enum."""

    __slots__ = ()


def quote(value):
    """A string or bytes in quotes; what is not printable ASCII is escaped, text as UTF-8."""
    data = value.encode() if isinstance(value, str) else bytes(value)
    out = []
    for byte in data:
        if byte in b'\\"':
            out.append("\\" + chr(byte))
        elif 32 <= byte < 127:
            out.append(chr(byte))
        else:
            out.append(f"\\{byte:03o}")
    return '"' + "".join(out) + '"'


def scalar(value):
    """A value that is no message."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if math.isnan(value):
            return "nan" if math.copysign(1, value) > 0 else "-nan"
        if math.isinf(value):
            return "inf" if value > 0 else "-inf"
        return repr(value)
    return str(value) if isinstance(value, Bare) else quote(value)


def write_fields(fields):
    """`name: value name { … }`, for each field in order."""
    out = []
    for name, value in fields:
        if value is None:
            continue
        if isinstance(value, (list, tuple)):
            if value and all(isinstance(item, (int, float)) for item in value):
                out.append(f"{name}: [{', '.join(scalar(item) for item in value)}]")
            else:
                out.extend(write_fields([(name, item)]) for item in value)
        elif isinstance(value, Message):
            inner = write_fields(value.fields)
            out.append(f"{name} {{ {inner} }}" if inner else f"{name} {{}}")
        else:
            out.append(f"{name}: {scalar(value)}")
    return " ".join(out)
