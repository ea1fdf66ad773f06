"""sample_from_datasets and choose_from_datasets."""

import math

import numpy as np

from penstock._dataset import _cardinality
from penstock._dataset._arguments import draws
from penstock._dataset._cardinality import INFINITE, UNKNOWN
from penstock._dataset._chain import Chain, merged_options, of_stages, shown
from penstock._dataset._element import refuse_choice
from penstock._spec._stage import Nested, Stage, Trait, declare


declare("choose_from_datasets", Trait.BY_VALUE)

def _check(datasets, what):
    datasets = list(datasets)
    if not datasets:
        raise ValueError("datasets are at least one, not none")
    for dataset in datasets:
        if not isinstance(dataset, Chain):
            raise TypeError(f"datasets are Datasets, not {type(dataset).__name__}")
        if dataset._structure != datasets[0]._structure:
            raise TypeError(
                f"the elements of all datasets have one structure: {shown(datasets[0]._structure)} and "
                f"{shown(dataset._structure)}"
            )
    for dataset in datasets:
        if dataset._window is not None:
            refuse_choice(what, datasets)
    return datasets


def _tempered(weights, temperature):
    if not 0 < temperature < np.inf:
        raise ValueError(f"temperature is a number above 0, not {temperature}")
    most = math.log(max(weights) or 1)
    # Twelve digits: the last bits of a power are those of the machine's library, and weights belong to the stream.
    return [float(f"{math.exp((math.log(weight) - most) / temperature):.12g}") if weight > 0 else 0.0 for weight in weights]


def sample(datasets, weights, seed, rerandomize, stop_on_empty, temperature=None):
    datasets = _check(datasets, "sample_from_datasets")
    if temperature is not None:
        if isinstance(weights, Chain):
            raise ValueError("temperature goes with weights that are numbers, not with a dataset of them")
        if weights is None:
            weights = [dataset._count for dataset in datasets]
            if any(count in (INFINITE, UNKNOWN) for count in weights):
                raise ValueError("temperature needs weights: not all datasets have a known number of elements")
    if isinstance(weights, Chain):
        return _sample_by(datasets, weights, datasets[0].random(seed, rerandomize), stop_on_empty)
    if weights is not None:
        weights = [float(weight) for weight in np.asarray(weights).ravel()]
        if len(weights) != len(datasets):
            raise ValueError(f"weights are one for each dataset: {len(weights)} for {len(datasets)}")
        if not all(0 <= weight < np.inf for weight in weights):
            raise ValueError(f"weights are numbers from 0 on, not {weights}")
        if temperature is not None:
            weights = _tempered(weights, float(temperature))
    drawn_by = draws(seed, rerandomize)
    if len(datasets) == 1 and (weights is None or weights[0] > 0):
        return datasets[0]
    fields = [
        ("input", [Nested(dataset._stages) for dataset in datasets]),
        ("weight", weights),
        ("stop_on_empty_dataset", True if stop_on_empty else None),
        *drawn_by,
    ]
    drawn = [dataset._count for i, dataset in enumerate(datasets) if weights is None or weights[i] > 0]
    count = 0 if not drawn else drawn[0]
    for other in drawn[1:]:
        count = _cardinality.of_concatenate(count, other)
    if stop_on_empty and set(drawn) != {INFINITE}:
        count = UNKNOWN
    stages = [Stage("sample_from_datasets", fields)]
    window = next((dataset._window for dataset in datasets if dataset._window), None)
    return of_stages(stages, datasets[0]._structure, count, merged_options(datasets), window)


def _sample_by(datasets, weights, numbers, stop_on_empty):
    """Each element of `weights` is the weights of one draw."""
    if weights._structure is not None:
        raise TypeError(f"weights are one tensor each, with a number for each dataset, not {shown(weights._structure)}")
    shape = weights.element_spec.shape
    if shape not in ((len(datasets),), (None,)):
        raise ValueError(f"weights are one for each dataset: shape {shape} for {len(datasets)}")
    if len(datasets) == 1:
        return datasets[0]

    def drawn(weight, number):
        # A number of 32 bits is a place below the sum of all weights; behind how many of the sums of the first ones it lies is the choice.
        ends = np.cumsum(weight.astype(np.float64))
        place = number.astype(np.float64) / 2.0**32 * ends[len(datasets) - 1]
        return np.sum(ends <= place).astype(np.int64)

    return choose(datasets, weights.zip(weights, numbers).map(drawn), stop_on_empty)


def choose(datasets, choices, stop_on_empty):
    datasets = _check(datasets, "choose_from_datasets")
    if not isinstance(choices, Chain):
        raise TypeError(f"choice_dataset is a Dataset, not {type(choices).__name__}")
    if choices._structure is not None:
        raise TypeError(f"choices are one int64 each, not {shown(choices._structure)}")
    fields = [
        ("input", [Nested(dataset._stages) for dataset in datasets]),
        ("stop_on_empty_dataset", None if stop_on_empty else False),
    ]
    stages = (*choices._stages, Stage("choose_from_datasets", fields))
    options = merged_options([choices, *datasets])
    ends = {dataset._count != INFINITE for dataset in datasets}
    endless = choices._count == INFINITE and ends != {True} and (not stop_on_empty or ends == {False})
    window = next((dataset._window for dataset in (choices, *datasets) if dataset._window), None)
    return of_stages(stages, datasets[0]._structure, INFINITE if endless else UNKNOWN, options, window)
