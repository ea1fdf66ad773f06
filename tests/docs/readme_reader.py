"""What the README leaves to its reader: a torch Dataset, models, and steps that look at what they get. tests/docs/run_page.py runs it first."""

import importlib.util
import sys
import types

import numpy as np

import penstock

assert penstock  # which the page imports only later


def _missing(name):
    return importlib.util.find_spec(name) is None


def _placed(name, **functions):
    """A module in the place of one that needs a framework."""
    module = types.ModuleType(name)
    vars(module).update(functions)
    sys.modules[name] = module
    setattr(penstock, name.partition(".")[2], module)


# What is missing is stood for by what needs no framework: batches of NumPy's arrays.
if _missing("torch"):
    _placed("penstock.torch", DataLoader=lambda dataset, **options: [dataset])
    dataset = (np.zeros((64, 3)), np.zeros(64))
else:
    import torch

    dataset = torch.utils.data.TensorDataset(torch.arange(640.0).reshape(128, 5), torch.arange(128))
if _missing("tensorflow"):
    _placed("penstock.tensorflow", dataset=lambda dataset, label: dataset.map(lambda x: (x["x"], x[label])))
if _missing("jax"):
    _placed("penstock.jax", loader=lambda dataset: dataset)


def train(images, labels):
    assert len(images) == len(labels) == 64


class _Model:
    def fit(self, batches, epochs):
        for epoch in range(epochs):
            labels = [_photographs(x, y) for x, y in batches]
            assert len(labels) == 2


def _photographs(x, y):
    assert tuple(x.shape) == (64, 224, 224, 3) and tuple(y.shape) == (64,)
    x = np.asarray(x)
    assert -1 <= x.min() < x.max() <= 1
    return np.asarray(y).tolist()


if _missing("keras"):
    model = _Model()
else:
    import keras

    model = keras.Sequential([keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(10, "softmax")])
    model.compile("adam", "sparse_categorical_crossentropy")

state = []


def train_step(state, x, y):
    labels = _photographs(x, y)
    # Shuffled anew in each epoch.
    assert labels not in state
    return [*state, labels]


_steps = []


def step(board, flags, score):
    assert len(state) == 6
    assert board.shape[0] == flags.shape[0] == len(score) and not board.flags.writeable
    _steps.append(len(score))
    if len(_steps) == 3:
        raise Enough  # noqa: F821  # of run_page.py: the pipeline has no end
