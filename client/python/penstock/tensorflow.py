"""Batches as a tf.data.Dataset: for Keras' model.fit, and for more operations of tf.data.

    model.fit(penstock.tensorflow.dataset(dataset.map(lambda x: (x["image"], x["label"]))), epochs=3)
    model.fit(penstock.tensorflow.dataset("flowers", steps=1000, label="y"))     # a pipeline of a running penstockd, whose elements are dicts
    model.fit(penstock.tensorflow.dataset(dataset, share="job", rank=rank, world_size=8))     # each process its rows of one pass

Tensors of numbers are the daemon's memory: TensorFlow takes NumPy's arrays without a copy where they are aligned to 64 bytes, as those of
a ring are. Needs the package tensorflow; importing penstock does not.
"""

from __future__ import annotations

from typing import Any, Optional, Sequence, Union

import numpy as np
import tensorflow as tf

import penstock
from penstock._epochs import EpochLoader
from penstock._ragged import RaggedTensor
from penstock._sparse import SparseTensor
from penstock._tracing._refusals import listed

__all__ = ["dataset"]


def _map(function, element):
    if isinstance(element, dict):
        return {key: _map(function, inner) for key, inner in element.items()}
    if isinstance(element, tuple) and not isinstance(element, SparseTensor):
        return tuple(_map(function, inner) for inner in element)
    return function(element)


def _declared_spec(spec):
    return _spec_of_shape(spec, spec.shape)


def _open_spec(spec):
    """The same, of however many rows."""
    return _spec_of_shape(spec, [None, *spec.shape[1:]] if spec.shape else [])


def _spec_of_shape(spec, shape):
    dtype = tf.string if spec.kind == "string" or spec.dtype == penstock.string else tf.as_dtype(spec.dtype)
    if spec.kind == "ragged":
        # Axes behind the last that has several sizes are those of the values.
        ragged_rank = max(axis for axis, size in enumerate(shape) if size is None)
        splits_dtype = tf.as_dtype(spec.row_splits_dtype)
        return tf.RaggedTensorSpec(shape=shape, dtype=dtype, ragged_rank=ragged_rank, row_splits_dtype=splits_dtype)
    if spec.kind == "sparse":
        return tf.SparseTensorSpec(shape=shape, dtype=dtype)
    return tf.TensorSpec(shape=shape, dtype=dtype)


def _seen_spec(tensor, dynamic):
    """Of a tensor of a batch, whose rows may be fewer in another one; dynamic: whose other axes may be of another size there."""
    if isinstance(tensor, RaggedTensor):
        ragged = tensor.nested_row_splits
        values = tensor.flat_values
        shape = [None] * (len(ragged) + 1) + list(values.shape[1:])
        splits_dtype = tf.as_dtype(tensor.row_splits.dtype)
        return tf.RaggedTensorSpec(shape=shape, dtype=_dtype(values), ragged_rank=len(ragged), row_splits_dtype=splits_dtype)
    if isinstance(tensor, SparseTensor):
        return tf.SparseTensorSpec(shape=[None] * len(tensor.dense_shape), dtype=_dtype(tensor.values))
    shape = [None] * tensor.ndim if dynamic else [None, *tensor.shape[1:]][: tensor.ndim]
    return tf.TensorSpec(shape=shape, dtype=_dtype(tensor))


def _dtype(array):
    return tf.string if array.dtype == object else tf.as_dtype(array.dtype)


def _tensor(tensor):
    if isinstance(tensor, SparseTensor):
        return tf.SparseTensor(*tensor)
    if not isinstance(tensor, RaggedTensor):
        return tensor
    return tf.RaggedTensor.from_nested_row_splits(tensor.flat_values, tensor.nested_row_splits, validate=False)


def dataset(
    source,
    *,
    steps: Optional[int] = None,
    label: Union[str, Sequence[str], None] = None,
    share: Optional[str] = None,
    world: Any = None,
    guard: Any = "auto",
    helpers: Any = None,
    **options: Any,
) -> tf.data.Dataset:
    """A tf.data.Dataset of the same elements.

    Args:
      source: a penstock.Dataset; each iteration is a pass over it. Or the name of a pipeline that
        penstockd runs; an iteration goes on where the one before ended.
      steps: batches of one iteration: the length of an epoch if a pipeline has no end.
      label: for elements that are dicts: the feature that becomes the second of a pair (x, y), as model.fit takes them. Several
        names give a dict of these features. x is the rest: a dict, or the tensor if only one is left.
      share: for a Dataset, as in penstock.torch.loader: the processes of a job take its passes together, and each gets the rows of
        its `rank` of `world_size`. An iteration ends with the pass, unless `steps` gives its length.
      world, guard: several hosts, as in penstock.torch.loader.
      helpers: daemons of other hosts that make steps, as in penstock.torch.loader.
      **options: of penstock.attach, for a pipeline or with `share`.

    Returns:
      Elements in the structure of the source: dicts, tuples or lone tensors. Strings are tf.string,
      ragged tensors tf.RaggedTensor, sparse tensors tf.SparseTensor. A pipeline's shapes are those of its first batch, with an open
      first axis. If the shapes differ from batch to batch, all axes of dense tensors are open.

    Raises:
      TypeError: options for a Dataset without `share`; `label` for elements that are no dicts. Also the errors of penstock.attach.
      ValueError: no feature has the name `label`.
      OutOfRangeError: the pipeline has ended.
    """
    if world is not None and isinstance(source, str):
        raise TypeError("world is of a Dataset; a pipeline makes the rows of one host as it was created (penstock create SPEC --world HOSTS:HOST)")
    if world is not None:
        options.update(world=world, guard=guard)
    if helpers is not None:
        options.update(helpers=helpers)
    batches = _batches(source, steps, share, options)
    return batches if label is None else batches.map(_pairs_of(batches.element_spec, label), num_parallel_calls=1, deterministic=True)


def _pairs_of(spec, label):
    """What makes pairs of features and labels of an element."""
    labels = [label] if isinstance(label, str) else list(label)
    if not isinstance(spec, dict):
        raise TypeError(f"label={label!r} names a feature of elements that are dicts; these are {'tuples' if isinstance(spec, tuple) else 'lone tensors'}")
    missing = [name for name in labels if name not in spec]
    if missing or not labels or len(spec) <= len(set(labels)):
        raise ValueError(f"label is one of the features, {listed(map(repr, spec))}, beside which others are left; not {label!r}")
    features = [name for name in spec if name not in labels]

    def pair(element):
        x = {name: element[name] for name in features}
        y = {name: element[name] for name in labels}
        return x[features[0]] if len(features) == 1 else x, y[label] if isinstance(label, str) else y

    return pair


def _batches(source, steps, share, options):
    if share is not None or not {"world", "helpers"}.isdisjoint(options):
        return _shared(EpochLoader(source, lambda array: array, dict(options, share=share)), steps)
    if not isinstance(source, str):
        if options:
            raise TypeError(f"arguments of penstock.attach, which a dataset does not take: {', '.join(sorted(options))}")
        signature = _map(_declared_spec, source.element_spec)
        cut = source if steps is None else source.take(steps)
        batches = tf.data.Dataset.from_generator(lambda: (_map(_tensor, e) for e in cut), output_signature=signature)
        # Keras asks how long an epoch is.
        cardinality = _cardinality(cut)
        return batches if cardinality == penstock.UNKNOWN_CARDINALITY else batches.apply(tf.data.experimental.assert_cardinality(cardinality))

    loader = penstock.attach(source, **options)
    first = next(loader, None)
    if first is None:
        raise penstock.OutOfRangeError(f"the pipeline has ended; its batches' types are those of a first one, which {source!r} has no more")
    waiting = [first]  # until an iteration takes it
    signature = _map(lambda tensor: _seen_spec(tensor, loader._dynamic), first)

    def generate():
        left = np.inf if steps is None else steps
        while left > 0:
            left -= 1
            element = waiting.pop() if waiting else next(loader, None)
            if element is None:
                return
            yield _map(_tensor, element)

    return tf.data.Dataset.from_generator(generate, output_signature=signature)


def _cardinality(dataset):
    """As Dataset.cardinality, with what the daemon has counted."""
    try:
        return len(dataset)
    except TypeError:
        return dataset.cardinality()


def _shared(loader, steps):
    def generate():
        left = np.inf if steps is None else steps
        while left > 0:
            before = left
            for element in loader:
                yield _map(_tensor, element)
                left -= 1
                if left == 0:
                    return
            # Without a number of steps, an iteration is a pass. One that has given nothing was the last.
            if steps is None or left == before:
                return

    return tf.data.Dataset.from_generator(generate, output_signature=_map(_open_spec, loader.dataset.element_spec))


def __dir__():
    return sorted(__all__)
