"""Writes dataset.json: the elements that tf.data makes of each case of dataset_cases.py.

Run by hand, with a Python that has TensorFlow:  python tests/golden/make_dataset_goldens.py
"""

import itertools
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


def spec_of(spec):
    """An element_spec: dtypes and shapes, with null for sizes that are not known."""
    if isinstance(spec, dict):
        return {"dict": {key: spec_of(part) for key, part in spec.items()}}
    if isinstance(spec, tuple):
        return {"tuple": [spec_of(part) for part in spec]}
    return [spec.dtype.name, None if spec.shape.rank is None else spec.shape.as_list()]


def error_of(case, namespace):
    try:
        list(itertools.islice(iter(case(namespace)), 100))
        return None
    except (tf.errors.OpError, ValueError, TypeError, AttributeError) as error:
        return type(error).__name__


def main():
    with tempfile.TemporaryDirectory() as folder:
        dataset_cases.write_files(pathlib.Path(folder))
        namespace = types.SimpleNamespace(
            Dataset=tf.data.Dataset, TFRecordDataset=tf.data.TFRecordDataset, TextLineDataset=tf.data.TextLineDataset,
            FixedLengthRecordDataset=tf.data.FixedLengthRecordDataset, io=tf.io, image=tf.image, np=tnp,
            AUTOTUNE=tf.data.AUTOTUNE, Options=tf.data.Options, experimental=tf.data.experimental, to_number=tf.strings.to_number, int32=tf.int32, int64=tf.int64, float32=tf.float32, string=tf.string, folder=folder,
            length_of=lambda values: tf.shape(values)[0], sizes_of=tf.shape,
        )  # fmt: skip
        results, specs = {}, {}
        for name, case in dataset_cases.CASES.items():
            dataset = case(namespace)
            specs[name] = {"spec": spec_of(dataset.element_spec), "cardinality": int(dataset.cardinality())}
            results[name] = [write(element, folder) for element in dataset.as_numpy_iterator()]
        mistakes = {name: error_of(case, namespace) for name, case in dataset_cases.MISTAKES.items()}
    parts = {"cases": results, "specs": specs, "mistakes": mistakes}
    text = ",\n".join(
        f'"{part}":{{\n' + ",\n".join(f'"{name}":{json.dumps(row, separators=(",", ":"))}' for name, row in rows.items()) + "\n}"
        for part, rows in parts.items()
    )
    (HERE / "dataset.json").write_text(f'{{"tensorflow":"{tf.__version__}",{text}}}\n')


if __name__ == "__main__":
    main()
