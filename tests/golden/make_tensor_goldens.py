#!/usr/bin/env python3
"""Writes tensors.json: what TensorFlow makes of tensor_cases.py. Needs TensorFlow (2.21 made the committed file)."""

import json
import pathlib
import re

import numpy as np
import tensor_cases
import tensorflow as tf

ROOT = pathlib.Path(__file__).parents[2]


def exists(name):
    place = tf
    for part in name.split("."):
        place = getattr(place, part, None)
    return place is not None


if __name__ == "__main__":
    table = (ROOT / "docs/tf_functions_table.md").read_text()
    missing = [name for name in re.findall(r"^\| `tf.([\w.]+)`", table, re.MULTILINE) if not exists(name)]
    assert not missing, missing
    lines = []
    for theirs, _, _ in tensor_cases.CASES:
        scope = {"tf": tf, "np": np, **{name: tf.constant(value) for name, value in tensor_cases.INPUTS.items()}}
        result = np.asarray(eval(theirs, scope))
        found = {"dtype": result.dtype.name, "shape": list(result.shape), "bytes": result.tobytes().hex()}
        lines.append(f"{json.dumps(theirs)}:{json.dumps(found, separators=(',', ':'))}")
    text = '{"tensorflow":%s,"cases":{\n%s}}\n' % (json.dumps(tf.__version__), ",\n".join(lines))
    (pathlib.Path(__file__).parent / "tensors.json").write_text(text)
    print(f"{len(lines)} cases")
