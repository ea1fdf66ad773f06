#!/usr/bin/env python3
"""Writes strings.json: what TensorFlow makes of string_cases.py. Needs TensorFlow (2.21 made the committed file)."""

import json
import pathlib

import string_cases
import tensorflow as tf


def result(case, text):
    """The tensor, or "error"."""

    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def run(x):
        return case(tf, x)

    try:
        found = run(text)
    except tf.errors.OpError:
        return "error"
    values = found.numpy()
    flat = [value.hex() for value in values.ravel()] if found.shape.rank and found.dtype == tf.string else None
    if flat is None:
        flat = [values.hex()] if found.dtype == tf.string else values.ravel().tolist()
    return {"dtype": found.dtype.name, "shape": list(found.shape), "values": flat}


def written(dtype, form):
    """The texts of the numbers of a type, or "error"."""
    try:
        return [value.hex() for value in tf.strings.as_string(tf.constant(string_cases.NUMBERS[dtype], dtype), **form).numpy().tolist()]
    except (tf.errors.OpError, ValueError):
        return "error"


if __name__ == "__main__":
    results = {}
    for cases, texts in ((string_cases.CASES, string_cases.TEXTS), (string_cases.CODED_CASES, string_cases.CODED)):
        for name, case in cases.items():
            results[name] = [result(case, text) for text in texts]
    lines = [f"{json.dumps(name)}:{json.dumps(found, separators=(',', ':'))}" for name, found in results.items()]
    formats = {dtype: [written(dtype, form) for form in string_cases.FORMATS] for dtype in string_cases.NUMBERS}
    rows = [f"{json.dumps(dtype)}:{json.dumps(found, separators=(',', ':'))}" for dtype, found in formats.items()]
    text = '{"tensorflow":%s,"cases":{\n%s},"numbers":{\n%s}}\n' % (json.dumps(tf.__version__), ",\n".join(lines), ",\n".join(rows))
    (pathlib.Path(__file__).parent / "strings.json").write_text(text)
