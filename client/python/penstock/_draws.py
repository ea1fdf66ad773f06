"""Generators of random numbers that a traced function may draw from by mistake: once, while it is traced, for all elements."""

import pickle
import sys
import warnings

import numpy as np

from penstock._stage import user_line


# The places of a Mersenne Twister that has not drawn yet: NumPy's, which is seeded by the system, and Python's.
_FRESH = (623, 624)


def states():
    """The states of the generators that programs share, by the names that these are called by; not of packages that are not loaded."""
    known = {}
    if (random := sys.modules.get("random")) is not None:
        known["random"] = random.getstate()
    if "numpy.random" in sys.modules:
        known["np.random"] = pickle.dumps(np.random.get_state(legacy=False))
    torch = sys.modules.get("torch")
    if hasattr(torch, "get_rng_state"):
        known["torch"] = torch.get_rng_state().numpy().tobytes()
    return known


def _has_drawn(name):
    """Of a generator that was not there before."""
    if name == "np.random":
        return np.random.get_state(legacy=False)["state"].get("pos", _FRESH[0]) not in _FRESH
    return name == "random" and sys.modules[name].getstate()[1][-1] not in _FRESH


def warn_of_draws(before):
    """Says which generators have drawn since then."""
    drawn = [name for name, state in states().items() if (before[name] != state if name in before else _has_drawn(name))]
    if drawn:
        line = user_line()
        warnings.warn_explicit(
            f"the function draws by {' and '.join(drawn)} while it is traced, which is once for all elements; penstock.functions.random_uniform, "
            "random_normal and random_beta, and penstock.image.random_…, draw for each",
            RuntimeWarning,
            line.file,
            line.number,
        )
