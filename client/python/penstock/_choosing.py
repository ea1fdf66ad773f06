"""sample_from_datasets and choose_from_datasets."""

import numpy as np

from penstock import _cardinality
from penstock._cardinality import INFINITE, UNKNOWN
from penstock._dataset import Dataset, _merged_options, _shown
from penstock._stage import Nested, Stage


def _check(datasets):
    datasets = list(datasets)
    if not datasets:
        raise ValueError("datasets are at least one, not none")
    for dataset in datasets:
        if not isinstance(dataset, Dataset):
            raise TypeError(f"datasets are Datasets, not {type(dataset).__name__}")
        if dataset._structure != datasets[0]._structure:
            raise TypeError(
                f"the elements of all datasets have one structure: {_shown(datasets[0]._structure)} and "
                f"{_shown(dataset._structure)}"
            )
    return datasets


def sample(datasets, weights, draws, stop_on_empty):
    datasets = _check(datasets)
    if isinstance(weights, Dataset):
        raise TypeError("weights are numbers; a dataset of weights is not built")
    if weights is not None:
        weights = [float(weight) for weight in np.asarray(weights).ravel()]
        if len(weights) != len(datasets):
            raise ValueError(f"weights are one for each dataset: {len(weights)} for {len(datasets)}")
    if len(datasets) == 1 and (weights is None or weights[0] > 0):
        return datasets[0]
    fields = [
        ("input", [Nested(dataset._stages) for dataset in datasets]),
        ("weight", weights),
        ("stop_on_empty_dataset", True if stop_on_empty else None),
        *draws,
    ]
    drawn = [dataset._count for i, dataset in enumerate(datasets) if weights is None or weights[i] > 0]
    count = 0 if not drawn else drawn[0]
    for other in drawn[1:]:
        count = _cardinality.of_concatenate(count, other)
    if stop_on_empty and set(drawn) != {INFINITE}:
        count = UNKNOWN
    return Dataset([Stage("sample_from_datasets", fields)], datasets[0]._structure, count, _merged_options(datasets))


def choose(datasets, choices, stop_on_empty):
    datasets = _check(datasets)
    if not isinstance(choices, Dataset):
        raise TypeError(f"choice_dataset is a Dataset, not {type(choices).__name__}")
    if choices._structure is not None:
        raise TypeError(f"choices are one int64 each, not {_shown(choices._structure)}")
    fields = [
        ("input", [Nested(dataset._stages) for dataset in datasets]),
        ("stop_on_empty_dataset", None if stop_on_empty else False),
    ]
    stages = (*choices._stages, Stage("choose_from_datasets", fields))
    return Dataset(stages, datasets[0]._structure, UNKNOWN, _merged_options([choices, *datasets]))
