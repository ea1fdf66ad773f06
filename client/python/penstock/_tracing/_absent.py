"""Names of TensorFlow's and torch's that the package does not have, for whoever turns `tf` into `penstock` name by name: what stands in their place."""

import numpy as np

from penstock._registry import FUNCTIONS
from penstock._tracing import _refusals, _torch_names

_IN_THE_DATA_PATH = "Python does not run in the data path; do it in the trainer, or before the data is written (penstock write)"

# Where the place is no function of NumPy's, nor of the language, of the same name.
_PLACES = {
    "boolean_mask": "x[mask], or np.compress",
    "cast": "x.astype(np.float32), or a dtype of penstock",
    "concat": "np.concatenate",
    "cond": "np.where, of which both sides are computed",
    "constant": "np.array",
    "convert_to_tensor": "np.array",
    "data": "penstock.Dataset and the readers, such as penstock.TFRecordDataset, stand in the package itself",
    "function": "nothing: functions given to map are traced as they are",
    "gather": "x[indices], or penstock.functions.take(table, indices)",
    "keras": "penstock.tensorflow.dataset, for model.fit",
    "math": "NumPy's functions",
    "nest": "dicts and tuples",
    "newaxis": "None, or np.newaxis",
    "random": "penstock.functions.random_uniform and random_normal, and penstock.image.random_…",
    "range": "np.arange, or penstock.Dataset.range",
    "shape": "x.shape, or penstock.functions.shape(x) where only the data tells it",
    "size": "x.size",
    "sparse": "penstock.SparseTensor, and x.to_dense()",
    "train": "penstock.io.serialize_example for Examples, and the state_dict() of an iterator for checkpoints",
    "while_loop": _IN_THE_DATA_PATH,
}
_REDUCTIONS = {f"reduce_{name}": name for name in ("sum", "mean", "max", "min", "prod", "any", "all", "std")}


def error(name, known):
    """The AttributeError for `name`; `known` are the names that the package has."""
    place = _PLACES.get(name)
    numpys = _REDUCTIONS.get(name, name)
    if place is None and callable(getattr(np, numpys, None)):
        place = f"np.{numpys}, which takes traced values where docs/python.md lists it"
    if place is None and name in FUNCTIONS:
        place = f"penstock.functions.{name}"
    place = place or _torch_names.of_package(name)
    hint = f"in its place: {place}" if place else _refusals.near(name, known)
    return AttributeError(f"module 'penstock' has no attribute {name!r}" + (f"; {hint}" if hint else ""))
