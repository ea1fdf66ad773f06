"""Writes json.json: drawn documents, whether Python's json takes each, and the values of json_cases.FEATURES in it.

    python3 tests/golden/make_json_goldens.py

Any Python from 3.9 on gives the same. Documents and strings are in hexadecimal, floats the bits of a float64 in hexadecimal; null is an error of that feature.
"""

import json
import pathlib
import struct

import json_cases


def shown(value):
    if isinstance(value, list):
        return [shown(inner) for inner in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float):
        return struct.pack(">d", value).hex()
    return value


def result(name, document):
    try:
        return shown(json_cases.value_of(name, document))
    except json_cases.Error:
        return None


def case(data):
    try:
        document = json_cases.parsed(data)
    except ValueError:
        return {"document": data.hex()}
    return {"document": data.hex(), "values": {name: result(name, document) for name in json_cases.FEATURES}}


if __name__ == "__main__":
    draw = json_cases.Draw(133)
    cases = [case(draw.document()) for _ in range(200)]
    path = pathlib.Path(__file__).with_name("json.json")
    path.write_text(json.dumps({"cases": cases}, separators=(",", ":")).replace('{"document"', '\n{"document"') + "\n")
    valid = [made["values"] for made in cases if "values" in made]
    print(len(cases), "documents,", len(valid), "valid;", {name: sum(made[name] is not None for made in valid) for name in json_cases.FEATURES})
