"""The names and numbers of a protocol, out of .proto files: what clients, specs and state folders of other releases go by.

A line of `lines()` is `penstock.v1.Batch.batch_size = 1 int64`: of each field with its type, of each value of an enum, and of each call with
what it takes and gives. Comments, defaults and the order of fields are no part of it.
"""

import pathlib
import re

_TREE = pathlib.Path(__file__).parents[2]
FOLDER = _TREE / "proto" / "penstock" / "v1"
_FIELD = re.compile(r"(?:(repeated|optional) )?(map ?<[^>]*>|[\w.]+) (\w+) = (\d+)")
_VALUE = re.compile(r"(\w+) = (-?\d+)")
_CALL = re.compile(r"rpc (\w+) ?\(([^)]*)\) ?returns ?\(([^)]*)\)")


def of_text(text):
    """The lines of one file, in its order."""
    # What quotes hold may look like a comment or a brace; nothing of it counts.
    text = re.sub(r'"(?:\\.|[^"\\])*"', '""', re.sub(r"//[^\n]*", "", text))
    package, found, within = "", [], []  # `within`: (keyword, name) of each brace that is open
    for statement, end in re.findall(r"([^;{}]*)([;{}])", text):
        statement = " ".join(statement.split())
        if end == "}":
            within.pop()
            continue
        keyword, _, name = statement.partition(" ")
        if end == "{":
            within.append((keyword, name))
            if keyword != "rpc":
                continue
        # A oneof gives its fields no name.
        scope = ".".join([package, *(name for keyword, name in within if keyword in ("message", "enum", "service"))])
        kind = next((keyword for keyword, _ in reversed(within) if keyword in ("message", "enum", "service")), "")
        if keyword == "package":
            package = name
        elif keyword in ("syntax", "import", "option", "reserved", ""):
            continue
        elif kind == "service" and (call := _CALL.match(statement)):
            found.append(f"{scope}.{call[1]}({call[2]}) {call[3]}")
        elif kind == "enum" and (value := _VALUE.match(statement)):
            found.append(f"{scope}.{value[1]} = {value[2]}")
        elif kind == "message" and (field := _FIELD.match(statement)):
            label, of_type, name, number = field.groups()
            # Present or not is a matter of whoever reads; one or many is not.
            found.append(f"{scope}.{name} = {number} {'repeated ' if label == 'repeated' else ''}{of_type}")
        else:
            raise ValueError(f"nothing is known of such a statement in {scope}: {statement!r}")
    return found


def lines():
    """Those of all files, sorted."""
    return sorted(line for path in FOLDER.glob("*.proto") for line in of_text(path.read_text()))
