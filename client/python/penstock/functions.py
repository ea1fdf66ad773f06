"""Every function of the expression language (docs/functions.md) under its own name, on traced values."""

from penstock._registry import FUNCTIONS as _FUNCTIONS
from penstock._tracing import _names
from penstock._tracing._functions import lookup as _lookup


# functions.pyi is what type checkers see.
def __getattr__(name):
    return _lookup(name, "penstock.functions", every=True, instead=_names.instead_of(name))


def __dir__():
    return sorted(_FUNCTIONS)
