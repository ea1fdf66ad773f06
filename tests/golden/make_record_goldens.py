"""Writes records.json: the Examples and the files that TensorFlow makes of record_cases.py, in hexadecimal digits.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_record_goldens.py
"""

import json
import pathlib
import tempfile

import numpy as np
import record_cases
import tensorflow as tf

HERE = pathlib.Path(__file__).parent


def feature(value):
    values = np.ravel(np.asarray(value, object))
    if len(values) and isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values.tolist()))
    values = np.ravel(value)
    if values.dtype.kind == "f":
        return tf.train.Feature(float_list=tf.train.FloatList(value=values.tolist()))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=map(int, values)))


def example(features):
    message = tf.train.Example(features=tf.train.Features(feature={name: feature(value) for name, value in features.items()}))
    # Else in the order of a hash table. (A name that another one begins with stands behind that one here, before it in ours.)
    return message.SerializeToString(deterministic=True)


def written(compression):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/file"
        with tf.io.TFRecordWriter(path, tf.io.TFRecordOptions(compression_type=compression)) as writer:
            for record in record_cases.RECORDS:
                writer.write(record)
        return pathlib.Path(path).read_bytes().hex()


goldens = {
    "tensorflow": tf.__version__,
    "examples": [example(features).hex() for features in record_cases.CASES],
    "files": {compression: written(compression) for compression in ("GZIP", "ZLIB")},
    "plain": written(""),
}
# 70,000 equal bytes are said by the cases.
goldens["plain"] = goldens["plain"].replace(record_cases.RECORDS[-1].hex(), "LAST")
(HERE / "records.json").write_text(json.dumps(goldens, indent=1) + "\n")
