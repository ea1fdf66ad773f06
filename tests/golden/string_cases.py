"""What functions of strings make of texts, in ways that read the same in TensorFlow and in Penstock.

make_string_goldens.py runs them with TensorFlow, tests/client/python_strings_test.py with Penstock. `t` has `strings` and `io`; a case takes
one string and is run for each text by itself.
"""

import base64

TEXTS = [
    b"",
    b" ",
    b"a",
    b"/data/train/cat/0001.jpg",
    b"a,b,,c,",
    b",,",
    b"  two  words\tand\nlines \r\x0b\x0c",
    b"MiXeD Case 123",
    "Grüße, 世界 🙂".encode(),
    b"\xff\x80 no \xc3 text\x00in it",
    b"x" * 300 + b"--" + b"y" * 300,
    b"aaaa",
    b"k1=v1;k2=v2;k3",
]
CODED = [
    b"",
    b"AA==",
    b"AA",
    b"AAE",
    b"AAEC",
    b"_-8",
    b"_-8=",
    b"A",
    b"A===",
    b"AA=",
    b"AA==AA==",
    b"!!!!",
    b"A A=",
    base64.urlsafe_b64encode(bytes(range(256))),
    base64.urlsafe_b64encode(bytes(range(200))).rstrip(b"="),
]

CASES = {
    "length": lambda t, x: t.strings.length(x),
    "length, characters": lambda t, x: t.strings.length(x, unit="UTF8_CHAR"),
    "lower": lambda t, x: t.strings.lower(x),
    "upper": lambda t, x: t.strings.upper(x),
    "strip": lambda t, x: t.strings.strip(x),
    "split": lambda t, x: t.strings.split(x),
    "split at commas": lambda t, x: t.strings.split(x, ","),
    "split at two characters": lambda t, x: t.strings.split(x, "--"),
    "split at aa": lambda t, x: t.strings.split(x, "aa"),
    "split once": lambda t, x: t.strings.split(x, maxsplit=1),
    "split at a comma, twice": lambda t, x: t.strings.split(x, ",", maxsplit=2),
    "split, never": lambda t, x: t.strings.split(x, ",", maxsplit=0),
    "split at white space, never": lambda t, x: t.strings.split(x, maxsplit=0),
    "split at white space, twice": lambda t, x: t.strings.split(x, maxsplit=2),
    "split and take": lambda t, x: t.strings.split(x, "/")[-1],
    "join": lambda t, x: t.strings.join([x, x], separator="+"),
    "join with constants": lambda t, x: t.strings.join(["<", x, ">", "!"]),
    "plus": lambda t, x: x + ".jpg",
    "plus, the other way": lambda t, x: "/root" + x,
    "equal": lambda t, x: x == "aaaa",
    "equal, quotes": lambda t, x: x == "a\"b'c\\",
    "not equal": lambda t, x: x != b"a",
    "equal, parts": lambda t, x: t.strings.split(x, ",") == "b",
    "equal, a string and its parts": lambda t, x: t.strings.split(x, ",") == x,
    "full match": lambda t, x: t.strings.regex_full_match(x, r"[a-z/]*\d*\.jpg"),
    "full match, lines": lambda t, x: t.strings.regex_full_match(x, ".*"),
    "full match, case": lambda t, x: t.strings.regex_full_match(x, "(?i)mixed.*"),
    "replace": lambda t, x: t.strings.regex_replace(x, r"(\w)(\d)", r"\2\1"),
    "replace, the first": lambda t, x: t.strings.regex_replace(x, "a", "<\\0>", replace_global=False),
    "replace, empty matches": lambda t, x: t.strings.regex_replace(x, "b*", "-"),
    "substr": lambda t, x: t.strings.substr(x, 1, 3),
    "substr, from the end": lambda t, x: t.strings.substr(x, -4, 3),
    "substr, none": lambda t, x: t.strings.substr(x, 0, 0),
    "substr, characters": lambda t, x: t.strings.substr(x, 2, 9, unit="UTF8_CHAR"),
    "substr, characters from the end": lambda t, x: t.strings.substr(x, -3, 2, unit="UTF8_CHAR"),
    "encode_base64": lambda t, x: t.io.encode_base64(x),
    "encode_base64, padded": lambda t, x: t.io.encode_base64(x, pad=True),
}
CODED_CASES = {"decode_base64": lambda t, x: t.io.decode_base64(x)}
