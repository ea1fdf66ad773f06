"""tf.data.experimental's names: transformations for Dataset.apply, and more ways to write Dataset's own methods."""

from penstock._cardinality import INFINITE as INFINITE_CARDINALITY
from penstock._cardinality import UNKNOWN as UNKNOWN_CARDINALITY
from penstock._dataset import AUTOTUNE, Dataset
from penstock._readers import CsvDataset

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
    "enumerate_dataset",
    "get_single_element",
    "group_by_window",
    "ignore_errors",
    "pad_to_cardinality",
    "rejection_resample",
    "sample_from_datasets",
    "scan",
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
enumerate_dataset = _transformation("enumerate")
group_by_window = _transformation("group_by_window")
ignore_errors = _transformation("ignore_errors")
pad_to_cardinality = _transformation("pad_to_cardinality")
rejection_resample = _transformation("rejection_resample")
scan = _transformation("scan")
take_while = _transformation("take_while")
unbatch = _transformation("unbatch")
unique = _transformation("unique")

choose_from_datasets = Dataset.choose_from_datasets
sample_from_datasets = Dataset.sample_from_datasets
Counter = Dataset.counter
RandomDataset = Dataset.random


def cardinality(dataset):
    """dataset.cardinality()"""
    return dataset.cardinality()


def get_single_element(dataset):
    """dataset.get_single_element()"""
    return dataset.get_single_element()
