"""How a worker sees that a function has used a global generator (penstock/_worker/_seeds.py)."""

import random

import numpy as np
import penstock
import pytest
from penstock._worker._seeds import GENERATORS

DRAWS = {
    "random": {
        "a number": random.random,
        "a whole number": lambda: random.getrandbits(3),
        "a normal number": lambda: random.gauss(0, 1),
        "the normal number that was kept back": lambda: random.gauss(0, 1),
        "a seed": lambda: random.seed(5),
        "many numbers": lambda: [random.random() for _ in range(624)],
    },
    "numpy.random": {
        "a number": lambda: np.random.random(),
        "a normal number": lambda: np.random.standard_normal(),
        "the normal number that was kept back": lambda: np.random.standard_normal(),
        "one more number": lambda: np.random.random(),
        "a seed": lambda: np.random.seed(5),
        "another generator": lambda: np.random.set_bit_generator(np.random.PCG64(3)),
        "a number of that": lambda: np.random.random(),
        "yet another one": lambda: np.random.set_bit_generator(np.random.MT19937(3)),
        "a number of the last one": lambda: np.random.random(),
    },
}


@pytest.mark.parametrize("name", DRAWS)
def test_every_use_of_a_generator_is_seen_and_nothing_else(name):
    bits = np.random.get_bit_generator() if hasattr(np.random, "get_bit_generator") else None
    look = GENERATORS[name].look()
    seen = look()
    for what, draw in DRAWS[name].items():
        assert look() == seen, f"in front of {what}"
        draw()
        assert look() != seen, what
        seen = look()
    if bits is not None:
        np.random.set_bit_generator(bits)


def test_a_look_asks_no_generator():
    # Where CPython and NumPy lay out their state otherwise, it is asked for, and a sheet of few rows takes several times as long.
    random.seed(1)
    words = random.getstate()[1]
    assert GENERATORS["random"].look()() == (np.array([words[-1], *words[:-1]], np.uint32).tobytes(), None)
    np.random.seed(1)
    state = np.random.get_state(legacy=False)["state"]
    seen = GENERATORS["numpy.random"].look()()[1]
    assert seen == np.array([*state["key"], state["pos"]], np.uint32).tobytes()


class KeptBack:
    """Each process has kept a normal number back, of its own, before the first row."""

    def __setstate__(self, state):
        random.gauss(0, 1)
        np.random.standard_normal()

    def __getstate__(self):
        return {"any": 1}

    def __call__(self, x):
        return np.array([random.gauss(0, 1), np.random.standard_normal(), x])


@pytest.mark.parametrize("of", [1, 3])
def test_a_normal_number_that_was_kept_back_is_no_draw_of_a_row(of):
    def rows(workers):
        dataset = penstock.Dataset.range(of).map(KeptBack(), python=True, output=penstock.TensorSpec((3,), np.float64), seed=2, workers=workers)
        return [row.tolist() for row in dataset.as_numpy_iterator()]

    assert rows(1) == rows(1) == rows(3)
