"""Writes dataset.json: the elements that tf.data makes of each case of dataset_cases.py.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_dataset_goldens.py
"""

import json
import pathlib
import tempfile
import types

import dataset_cases
import numpy as np
import tensorflow as tf
import tensorflow.experimental.numpy as tnp

HERE = pathlib.Path(__file__).parent
# NumPy's methods and operators on tensors, with NumPy's promotion as far as TensorFlow has it.
tnp.experimental_enable_numpy_behavior()


def write(element, folder):
    """An element as JSON: dicts and lists of tensors. FOLDER stands for the files' folder in strings."""
    if isinstance(element, dict):
        return {"dict": {key: write(value, folder) for key, value in element.items()}}
    if isinstance(element, tuple):
        return {"tuple": [write(value, folder) for value in element]}
    # NumPy's own type for bytes would drop zeros at their end.
    array = np.asarray(element, object if isinstance(element, bytes) else None)
    if array.dtype.kind in "SO":
        values = [value.replace(folder.encode(), b"FOLDER").hex() for value in array.ravel().tolist()]
        return {"dtype": "string", "shape": array.shape, "values": values}
    return {"dtype": array.dtype.name, "shape": array.shape, "values": array.ravel().tolist()}


def main():
    with tempfile.TemporaryDirectory() as folder:
        dataset_cases.write_files(pathlib.Path(folder))
        namespace = types.SimpleNamespace(
            Dataset=tf.data.Dataset, TFRecordDataset=tf.data.TFRecordDataset, TextLineDataset=tf.data.TextLineDataset,
            FixedLengthRecordDataset=tf.data.FixedLengthRecordDataset, io=tf.io, image=tf.image, np=tnp,
            AUTOTUNE=tf.data.AUTOTUNE, int32=tf.int32, int64=tf.int64, float32=tf.float32, string=tf.string, folder=folder,
            length_of=lambda values: tf.shape(values)[0],
        )  # fmt: skip
        results = {}
        for name, case in dataset_cases.CASES.items():
            results[name] = [write(element, folder) for element in case(namespace).as_numpy_iterator()]
    rows = ",\n".join(f'"{name}":{json.dumps(result, separators=(",", ":"))}' for name, result in results.items())
    (HERE / "dataset.json").write_text(f'{{"tensorflow":"{tf.__version__}","cases":{{\n{rows}\n}}}}\n')


if __name__ == "__main__":
    main()
