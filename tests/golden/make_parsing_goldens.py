"""Writes parsing.json: what tf.data makes of each case of parsing_cases.py, elements or an error's class.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_parsing_goldens.py
"""

import json
import pathlib
import tempfile
import types

import numpy as np
import parsing_cases
import tensorflow as tf
import tensorflow.experimental.numpy as tnp

HERE = pathlib.Path(__file__).parent
tnp.experimental_enable_numpy_behavior()


def tensor(value):
    """NumPy's own type for bytes would drop zeros at their end."""
    array = np.asarray(value, object if isinstance(value, bytes) else None)
    if array.dtype.kind in "SO":
        return {"dtype": "string", "shape": array.shape, "values": [item.hex() for item in array.ravel().tolist()]}
    return {"dtype": array.dtype.name, "shape": array.shape, "values": array.ravel().tolist()}


def write(element):
    """An element as JSON: dicts and lists of dense, sparse and ragged tensors."""
    if isinstance(element, dict):
        return {"dict": {key: write(value) for key, value in element.items()}}
    if isinstance(element, tf.SparseTensor):
        parts = (element.indices, element.values, element.dense_shape)
        indices, values, dense_shape = (part.numpy() for part in parts)
        return {"sparse": {"indices": indices.tolist(), "values": tensor(values), "dense_shape": dense_shape.tolist()}}
    if isinstance(element, tf.RaggedTensor):
        splits = [splits.numpy().tolist() for splits in element.nested_row_splits]
        dtype = element.row_splits.dtype.name
        return {"ragged": {"dtype": dtype, "splits": splits, "values": tensor(element.flat_values.numpy())}}
    if isinstance(element, tuple):
        return {"tuple": [write(value) for value in element]}
    return tensor(element.numpy())


def run(case, namespace):
    try:
        return [write(element) for element in case(namespace)]
    except (tf.errors.OpError, ValueError) as error:
        return {"error": type(error).__name__}


def main():
    with tempfile.TemporaryDirectory() as folder:
        parsing_cases.write_files(pathlib.Path(folder))
        namespace = types.SimpleNamespace(
            Dataset=tf.data.Dataset, TFRecordDataset=tf.data.TFRecordDataset, io=tf.io, np=tnp, experimental=tf.data.experimental,
            **{name: getattr(tf, name) for name in parsing_cases.DTYPES}, folder=folder,
            make_csv_dataset=tf.data.experimental.make_csv_dataset,
            make_batched_features_dataset=lambda *args, **kwargs: tf.data.experimental.make_batched_features_dataset(
                *args, reader=tf.data.TFRecordDataset, **kwargs
            ),
            required=lambda dtype: tf.constant([], dtype), to_number=tf.strings.to_number, parse_tensor=lambda x, dtype, shape: tf.io.parse_tensor(x, dtype),
        )  # fmt: skip
        results = {name: run(case, namespace) for name, case in parsing_cases.CASES.items()}
    rows = ",\n".join(f'"{name}":{json.dumps(result, separators=(",", ":"))}' for name, result in results.items())
    (HERE / "parsing.json").write_text(f'{{"tensorflow":"{tf.__version__}","cases":{{\n{rows}\n}}}}\n')


if __name__ == "__main__":
    main()
