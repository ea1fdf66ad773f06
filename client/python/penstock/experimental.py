"""tf.data.experimental's names: transformations for Dataset.apply, and more ways to write Dataset's own methods."""

import numpy as np

from penstock import _structure
from penstock._dataset import _arguments
from penstock._dataset import Dataset
from penstock._dataset._arguments import AUTOTUNE
from penstock._dataset._cardinality import INFINITE as INFINITE_CARDINALITY
from penstock._dataset._cardinality import UNKNOWN as UNKNOWN_CARDINALITY
from penstock._dataset._readers import CsvDataset
from penstock._dataset._ready_made import make_batched_features_dataset, make_csv_dataset

__all__ = [
    "AUTOTUNE",
    "Counter",
    "CsvDataset",
    "INFINITE_CARDINALITY",
    "RandomDataset",
    "UNKNOWN_CARDINALITY",
    "assert_cardinality",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enumerate_dataset",
    "from_list",
    "get_single_element",
    "get_structure",
    "group_by_window",
    "ignore_errors",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "pad_to_cardinality",
    "parallel_interleave",
    "parse_example_dataset",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
    "shuffle_and_repeat",
    "take_while",
    "unbatch",
    "unique",
]


def _transformation(method):
    def make(*args, **kwargs):
        return lambda dataset: getattr(dataset, method)(*args, **kwargs)

    make.__name__ = make.__qualname__ = method
    make.__doc__ = f"For Dataset.apply: {getattr(Dataset, method).__doc__}"
    return make


assert_cardinality = _transformation("assert_cardinality")
bucket_by_sequence_length = _transformation("bucket_by_sequence_length")
dense_to_ragged_batch = _transformation("ragged_batch")
dense_to_sparse_batch = _transformation("sparse_batch")
enumerate_dataset = _transformation("enumerate")
group_by_window = _transformation("group_by_window")
ignore_errors = _transformation("ignore_errors")
pad_to_cardinality = _transformation("pad_to_cardinality")
parse_example_dataset = _transformation("parse_example")
rejection_resample = _transformation("rejection_resample")
scan = _transformation("scan")
take_while = _transformation("take_while")
unbatch = _transformation("unbatch")
unique = _transformation("unique")

sample_from_datasets = Dataset.sample_from_datasets
Counter = Dataset.counter
RandomDataset = Dataset.random


def choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=False):
    """Dataset.choose_from_datasets, which here passes over datasets that have ended unless it is told to stop there, as TensorFlow's does."""
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def parallel_interleave(
    map_func, cycle_length, block_length=1, sloppy=False, buffer_output_elements=None, prefetch_input_elements=None
):
    """For Dataset.apply: interleave(map_func, cycle_length, block_length). The others have no effect: the order is always the same."""
    if buffer_output_elements is not None:
        _arguments.turns(buffer_output_elements, "buffer_output_elements")
    if prefetch_input_elements is not None and prefetch_input_elements != AUTOTUNE:
        _arguments.at_least(0, prefetch_input_elements, "prefetch_input_elements")
    return lambda dataset: dataset.interleave(map_func, cycle_length, block_length)


def cardinality(dataset):
    """dataset.cardinality()"""
    return dataset.cardinality()


def get_single_element(dataset):
    """dataset.get_single_element()"""
    return dataset.get_single_element()


def get_structure(dataset):
    """dataset.element_spec"""
    return dataset.element_spec


def shuffle_and_repeat(buffer_size, count=None, seed=None):
    """For Dataset.apply: shuffle(buffer_size, seed), then repeat(count)."""
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def map_and_batch(map_func, batch_size, num_parallel_batches=None, drop_remainder=False, num_parallel_calls=None):
    """For Dataset.apply: map(map_func), then batch(batch_size, drop_remainder). The two are always fused."""
    if num_parallel_batches is not None and num_parallel_calls is not None:
        raise ValueError("num_parallel_batches and num_parallel_calls are not given together")
    _arguments.turns(num_parallel_batches, "num_parallel_batches")
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(batch_size, drop_remainder)


def from_list(elements, name=None):
    """A Dataset of the elements of a list: nests of one structure and of arrays of one shape."""
    if not elements:
        raise ValueError("from_list takes at least one element")
    nests = [_structure.flatten(e, lambda v: not isinstance(v, (dict, tuple)), "an element of the list") for e in elements]
    structure = nests[0][0]
    if any(other != structure for other, _ in nests):
        raise TypeError("the elements of the list have one structure")
    rows = [_structure.in_order(structure, *nest) for nest in nests]
    columns = [np.stack([_leaf(leaf) for leaf in leaves]) for leaves in zip(*rows)]
    return Dataset.from_tensor_slices(_structure.fill(structure, iter(columns)), name)


def _leaf(value):
    """An array of numbers, or of strings as objects, whose zeros at the end stay."""
    array = np.asarray(value)
    return np.asarray(value, object) if array.dtype.kind in "SU" else array


def __dir__():
    return sorted(__all__)
