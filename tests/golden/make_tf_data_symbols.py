"""Writes tf_data_symbols.txt: every public name of tf.data, those of tf.io that read data, and some of tf.strings.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_tf_data_symbols.py
"""

import inspect
import pathlib

import tensorflow as tf

HERE = pathlib.Path(__file__).parent
# What tf.io has beside them writes files, or is of images and graphs.
READS = ("parse_", "decode_", "extract_", "Fixed", "VarLen", "Sparse", "Ragged", "TFRecord", "deserialize_", "read_file", "matching_files", "match_")
# Those that are here.
STRINGS = (
    "as_string", "bytes_split", "join", "length", "lower", "ngrams", "reduce_join", "regex_full_match", "regex_replace", "split", "strip", "substr",
    "to_hash_bucket", "to_hash_bucket_fast", "to_hash_bucket_strong", "to_number", "unicode_decode", "unicode_split", "upper",
)  # fmt: skip


def public(owner):
    return [name for name in dir(owner) if not name.startswith("_")]


def main():
    names = []
    for name in public(tf.data):
        if inspect.ismodule(getattr(tf.data, name)):
            names += [f"tf.data.{name}.{inner}" for inner in public(getattr(tf.data, name))]
        else:
            names.append(f"tf.data.{name}")
    names += [f"tf.data.Dataset.{name}" for name in public(tf.data.Dataset)]
    names += [f"tf.data.Iterator.{name}" for name in public(tf.data.Iterator)]
    names += [f"tf.data.Options.{name}" for name in public(tf.data.Options)]
    names += [f"tf.io.{name}" for name in public(tf.io) if name.startswith(READS)]
    names += ["tf.io.gfile", *(f"tf.strings.{name}" for name in STRINGS)]
    lines = [f"TensorFlow {tf.__version__}", *sorted(set(names))]
    (HERE / "tf_data_symbols.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
