"""Generators of random numbers that a traced function may draw from by mistake: once, while it is traced, for all elements."""

import pickle
import random
import sys
import warnings

import numpy as np

from penstock._stage import user_line


def states():
    """The states of the generators that programs share, by the names that these are called by."""
    known = {"random": random.getstate(), "np.random": pickle.dumps(np.random.get_state(legacy=False))}
    torch = sys.modules.get("torch")
    if hasattr(torch, "get_rng_state"):
        known["torch"] = torch.get_rng_state().numpy().tobytes()
    return known


def warn_of_draws(before):
    """Says which generators have drawn since then."""
    drawn = [name for name, state in states().items() if before.get(name, state) != state]
    if drawn:
        line = user_line()
        warnings.warn_explicit(
            f"the function draws by {' and '.join(drawn)} while it is traced, which is once for all elements; penstock.functions.random_uniform, "
            "random_normal and random_beta, and penstock.image.random_…, draw for each",
            RuntimeWarning,
            line.file,
            line.number,
        )
