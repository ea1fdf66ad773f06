"""Drawn JSON documents, and what Python's json makes of the features of FEATURES in each: for make_json_goldens.py and tests of the client."""

import json
import math
import random
import struct

# Each with the name of its type, its shape and its path; tests/codec/json_golden_test.cc and tests/client/python_json_test.py have the same.
FEATURES = {
    "i": ("int64", [], "i"),
    "f": ("float64", [], "f"),
    "g": ("float32", [], "f"),
    "b": ("bool", [], "b"),
    "s": ("string", [], "s"),
    "name": ("string", [], "user.name"),
    "dotted": ("string", [], r"a\.b.c\[\]"),
    "list": ("int64", [-1], "list"),
    "second": ("int64", [], "list[1]"),
    "vector": ("float64", [3], "vector"),
    "nested": ("float64", [-1, -1], "nested"),
    "contents": ("string", [-1], "messages[].content"),
    "tokens": ("int64", [-1, -1], "messages[].tokens"),
    "first": ("string", [], "messages[0].content"),
}


class Error(Exception):
    pass


class _TooLarge:
    """A finite number that float64 does not hold."""


def _float(text):
    value = float(text)
    return _TooLarge() if math.isinf(value) else value


def parsed(document):
    """What json.loads makes of bytes, which it decodes as UTF-8; ValueError of what it refuses."""
    return json.loads(document.decode("utf-8-sig"), parse_float=_float)


def _scalar(dtype, value):
    if dtype == "bool":
        if type(value) is not bool:
            raise Error
        return value
    if dtype == "int64":
        if type(value) is not int or not -(2**63) <= value < 2**63:
            raise Error
        return value
    if dtype == "string":
        if type(value) is not str:
            raise Error
        try:
            return value.encode()
        except UnicodeEncodeError:  # a lone surrogate
            raise Error from None
    if type(value) not in (int, float):
        raise Error
    try:
        value = float(value)
    except OverflowError:
        raise Error from None
    if dtype == "float64":
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        raise Error from None


def _list(value):
    if type(value) is not list:
        raise Error
    return value


def _inside(value, key):
    if type(value) is not dict or key not in value:
        raise Error
    return value[key]


def _at(value, place):
    if len(_list(value)) <= place:
        raise Error
    return value[place]


def value_of(name, document):
    """The value of a feature in a parsed document, of lists as nested lists. Error where there is none of its type."""
    dtype, shape, _ = FEATURES[name]
    if name in ("i", "b", "s"):
        return _scalar(dtype, _inside(document, name))
    if name in ("f", "g"):
        return _scalar(dtype, _inside(document, "f"))
    if name == "name":
        return _scalar(dtype, _inside(_inside(document, "user"), "name"))
    if name == "dotted":
        return _scalar(dtype, _inside(_inside(document, "a.b"), "c[]"))
    if name == "second":
        return _scalar(dtype, _at(_inside(document, "list"), 1))
    if name == "first":
        return _scalar(dtype, _inside(_at(_inside(document, "messages"), 0), "content"))
    if name == "contents":
        return [_scalar(dtype, _inside(message, "content")) for message in _list(_inside(document, "messages"))]
    if name == "tokens":
        messages = _list(_inside(document, "messages"))
        return [[_scalar(dtype, token) for token in _list(_inside(message, "tokens"))] for message in messages]
    values = _list(_inside(document, name))
    if name == "nested":
        return [[_scalar(dtype, value) for value in _list(inner)] for inner in values]
    if name == "vector" and len(values) != 3:
        raise Error
    return [_scalar(dtype, value) for value in values]


_TEXTS = ["", "a", "name", "naïve", "中文", "🙂🙃", "\n\t\"\\/\b", "\0", "\x7f\u2028", "x" * 70, "\\u0041", "end\\"]
_NUMBERS = [
    "0", "-0", "1", "-1", "7", "123456789012", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "18446744073709551616",
    "-9223372036854775809", "1" + "0" * 40, "0.1", "-0.0", "1.5", "2.5e3", "1E+2", "1e-7", "5e-324", "1e-400", "2.2250738585072011e-308",
    "1.7976931348623157e308", "1.8e308", "1e400", "-1e400", "3.5e38", "3.4028236e38", "16777217", "0.30000000000000004", "NaN", "Infinity", "-Infinity",
    "1" * 400,
]  # fmt: skip
_NEVER = ["01", "+1", ".5", "1.", "1e", "0x10", "nan", "inf", "-", "--1", "1_000", "True", "None", "nul", "undefined", "'a'"]
_SURROGATES = ['"\\ud83d\\ude42"', '"\\ud800"', '"\\udc00x"', '"\\ud800\\u0041"', '"\\ud83d\\ud83d\\ude42"']
_SPACES = ["", "", "", " ", "\n", "\t", "\r\n", "   "]


class Draw:
    """Documents of one seed."""

    def __init__(self, seed):
        self._random = random.Random(seed)

    def document(self):
        """Bytes that are JSON, mostly, with most features in them, mostly."""
        keys = ["i", "f", "b", "s", "user", "a.b", "list", "vector", "nested", "messages", "other", "x"]
        self._random.shuffle(keys)
        keys = [key for key in keys if self._random.random() < 0.85]
        if self._random.random() < 0.3 and keys:
            keys.insert(self._random.randrange(len(keys) + 1), self._random.choice(keys))
        text = self._joined("{", [self._string(key) + self._space() + ":" + self._space() + self._of(key) for key in keys], "}")
        data = (self._space() + text + self._space()).encode()
        if self._random.random() < 0.03:
            data = b"\xef\xbb\xbf" + data
        return self._damaged(data) if self._random.random() < 0.3 else data

    def _of(self, key):
        if self._random.random() < 0.08:
            return self._any(2)
        makers = {
            "i": self._number, "f": self._number, "b": lambda: self._random.choice(["true", "false"]), "s": self._text,
            "user": lambda: self._object({"name": self._text, "id": self._number}),
            "a.b": lambda: self._object({"c[]": self._text}),
            "list": lambda: self._list(self._integer), "vector": lambda: self._list(self._number, self._random.choice([3, 3, 3, 2, 4])),
            "nested": lambda: self._list(lambda: self._list(self._number)),
            "messages": lambda: self._list(lambda: self._object({"content": self._text, "tokens": lambda: self._list(self._integer)})),
        }  # fmt: skip
        return makers.get(key, lambda: self._any(3))()

    def _any(self, depth):
        kind = self._random.randrange(7 if depth else 4)
        if kind == 0:
            return self._number()
        if kind == 1:
            return self._text()
        if kind in (2, 3):
            return self._random.choice(["true", "false", "null"])
        inner = lambda: self._any(depth - 1)  # noqa: E731
        return self._list(inner) if kind < 6 else self._object({"a": inner, "name": inner, "content": inner})

    def _space(self):
        return self._random.choice(_SPACES)

    def _joined(self, first, parts, last):
        return first + self._space() + (self._space() + "," + self._space()).join(parts) + self._space() + last

    def _list(self, make, count=None):
        return self._joined("[", [make() for _ in range(self._random.randrange(5) if count is None else count)], "]")

    def _object(self, makers):
        items = list(makers.items()) + self._random.choices([("z", self._text), *makers.items()], k=self._random.choice([0, 0, 1]))
        self._random.shuffle(items)
        if self._random.random() < 0.05:
            items.pop()
        return self._joined("{", [self._string(key) + ":" + self._space() + make() for key, make in items], "}")

    def _integer(self):
        return str(self._random.choice([0, 1, -5, self._random.randrange(-(2**63), 2**63)]))

    def _number(self):
        drawn = self._random.random()
        if drawn < 0.3:
            return repr(self._random.uniform(-1, 1) * 10.0 ** self._random.randrange(-30, 30))
        return self._random.choice(_NUMBERS) if drawn < 0.7 else self._integer()

    def _text(self):
        if self._random.random() < 0.06:
            return self._random.choice(_SURROGATES)
        return self._string("".join(self._random.choice(_TEXTS) for _ in range(self._random.choice([1, 1, 1, 3]))))

    def _string(self, text):
        if self._random.random() < 0.1:
            return '"' + "".join(f"\\u{unit:04x}" for unit in struct.unpack(f"<{len(text.encode('utf-16-le')) // 2}H", text.encode("utf-16-le"))) + '"'
        return json.dumps(text, ensure_ascii=self._random.random() < 0.3)

    def _damaged(self, data):
        kind = self._random.randrange(6)
        at = self._random.randrange(len(data) + 1)
        if kind == 0:
            return data[:at]
        if kind == 1:
            return data[:at] + data[at + 1 :]
        if kind == 2:
            return data[:at] + bytes([self._random.choice(b'{}[],:"\\ \x00\x0c\x1a\x1fnu0')]) + data[at:]
        if kind == 3:
            return data[:at] + self._random.choice([b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80"]) + data[at:]
        if kind == 4:
            return data + self._random.choice([b"x", b"{}", b",", b"]", b"\x00", b"null"])
        number = self._random.choice(_NEVER).encode()
        return b'{"i": ' + number + b"}" if at % 2 else data.replace(b"true", number, 1)
