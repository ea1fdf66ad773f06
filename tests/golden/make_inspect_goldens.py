"""Writes inspect_*.tfrecord and inspect.json: files of tf.train.Examples and SequenceExamples, and what TensorFlow finds in them.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_inspect_goldens.py
"""

import json
import pathlib

import numpy as np
import tensorflow as tf

HERE = pathlib.Path(__file__).parent
RECORDS = 60


def feature(value):
    array = np.atleast_1d(np.asarray(value, object if isinstance(value, (bytes, list)) and np.asarray(value).dtype.kind in "SO" else None))
    if array.dtype.kind in "OS":
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=array.tolist()))
    if array.dtype.kind in "iu":
        return tf.train.Feature(int64_list=tf.train.Int64List(value=array.tolist()))
    return tf.train.Feature(float_list=tf.train.FloatList(value=array.tolist()))


def table():
    """A table of 40 columns: 26 of the kind of click logs, and others."""
    rng = np.random.default_rng(46)
    picture = tf.io.encode_png(np.zeros((2, 3, 3), np.uint8)).numpy()
    for row in range(RECORDS):
        columns = {f"c{i:02}": feature(int(rng.integers(0, 10 ** (i % 9 + 1)))) for i in range(20)}
        columns.update({f"f{i:02}": feature(np.float32(rng.normal() * 10**i)) for i in range(8)})
        columns.update({f"s{i}": feature(f"word {rng.integers(100)}".encode()) for i in range(4)})
        columns["embedding"] = feature(rng.normal(size=16).astype(np.float32))
        columns["picture"] = feature(picture)
        columns["raw"] = feature(bytes(rng.integers(0, 256, 32, dtype=np.uint8)))
        columns["tags"] = feature([f"tag{i}".encode() for i in range(row % 4)] or np.array([], object))
        columns["history"] = feature(rng.integers(-5, 5, row % 7, dtype=np.int64))
        if row % 3:
            columns["age"] = feature(int(rng.integers(18, 90)))
        if row % 5:
            columns["note"] = feature(b"seen")
        columns["label"] = feature(int(row % 2))
        yield tf.train.Example(features=tf.train.Features(feature=columns))


def sequences():
    rng = np.random.default_rng(47)
    for row in range(RECORDS):
        steps = 1 + row % 5
        context = {"id": feature(row), "title": feature(f"film {row}".encode())}
        lists = {
            "rating": [feature(np.float32(rng.uniform())) for _ in range(steps)],
            "place": [feature(rng.integers(0, 9, 2)) for _ in range(steps)],
            "words": [feature([b"w"] * (step % 3) or np.array([], object)) for step in range(steps)],
        }
        yield tf.train.SequenceExample(
            context=tf.train.Features(feature=context),
            feature_lists=tf.train.FeatureLists(feature_list={key: tf.train.FeatureList(feature=values) for key, values in lists.items()}),
        )


def look(features):
    """What a list of tf.train.Features, one a record or step (None: missing), has in common."""
    found = [one for one in features if one is not None and one.WhichOneof("kind") is not None]
    lists = [getattr(one, one.WhichOneof("kind")).value for one in found]
    values = [value for one in lists for value in one]
    out = {
        "type": "|".join(sorted({{"bytes_list": "bytes", "float_list": "float32", "int64_list": "int64"}[one.WhichOneof("kind")] for one in found})),
        "present": len(found),
        "least_values": min(map(len, lists)),
        "most_values": max(map(len, lists)),
    }
    if out["type"] == "bytes":
        out.update(least_bytes=min(map(len, values)), most_bytes=max(map(len, values)))
    else:
        out.update(least=min(values), most=max(values))
    return out


def main():
    answer = {}
    for name, made, compression in (("table", table, ""), ("sequences", sequences, ""), ("table_gzip", table, "GZIP")):
        records = list(made())
        with tf.io.TFRecordWriter(str(HERE / f"inspect_{name}.tfrecord"), tf.io.TFRecordOptions(compression_type=compression)) as writer:
            for record in records:
                writer.write(record.SerializeToString(deterministic=True))
        features = [record.context.feature if name == "sequences" else record.features.feature for record in records]
        keys = sorted({key for one in features for key in one})
        answer[name] = {"records": len(records), "features": {key: look([one[key] if key in one else None for one in features]) for key in keys}}
        if name == "sequences":
            lists = [record.feature_lists.feature_list for record in records]
            answer[name]["feature_lists"] = {
                key: {
                    "present": sum(key in one for one in lists),
                    "least_steps": min(len(one[key].feature) for one in lists),
                    "most_steps": max(len(one[key].feature) for one in lists),
                    "step": look([step for one in lists for step in one[key].feature]),
                }
                for key in sorted({key for one in lists for key in one})
            }
    # What tf.io parses of it with the features that a person would have typed.
    columns = {**{f"c{i:02}": "int64" for i in range(20)}, **{f"f{i:02}": "float32" for i in range(8)}, **{f"s{i}": "string" for i in range(4)}}
    columns.update(picture="string", raw="string", label="int64")
    typed = {key: tf.io.FixedLenFeature([], getattr(tf, dtype)) for key, dtype in columns.items()}
    typed.update(embedding=tf.io.FixedLenFeature([16], tf.float32), age=tf.io.FixedLenFeature([], tf.int64, 0), note=tf.io.FixedLenFeature([], tf.string, b""))
    typed.update(tags=tf.io.VarLenFeature(tf.string), history=tf.io.VarLenFeature(tf.int64))
    (batch,) = tf.data.TFRecordDataset(str(HERE / "inspect_table.tfrecord")).batch(RECORDS).map(lambda x: tf.io.parse_example(x, typed))
    parsed = {}
    for key, value in batch.items():
        value = tf.sparse.to_dense(value) if isinstance(value, tf.SparseTensor) else value
        array = value.numpy()
        parsed[key] = [bytes(item).hex() for item in array.ravel()] if array.dtype == object else array.ravel().tolist()
    answer["parsed"] = parsed
    (HERE / "inspect.json").write_text(json.dumps(answer, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
