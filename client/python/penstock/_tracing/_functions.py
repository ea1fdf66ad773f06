"""Finds functions of the expression language for penstock.image, penstock.io and penstock.functions."""

import functools

import numpy as np

from penstock._registry import FUNCTIONS, PARAMETERS
from penstock._tracing import _language, _refusals

# Those that are NumPy's: np.tanh(x), x.astype(...).
_NUMPY = {"where", "clip", "reshape", "transpose", "unpack_bits"}


def is_numpy(name):
    return name in _NUMPY or isinstance(getattr(np, name, None), np.ufunc) or name in np.sctypeDict


def lookup(name, module, prefixes=("",), every=False, instead=None):
    """The function `name` of `module`, as a Python function; AttributeError when there is none, with what to write in its place."""
    if not name.startswith("_"):
        for prefix in prefixes:
            if prefix + name in FUNCTIONS and (every or prefix or not is_numpy(name)):
                return _make(prefix + name, f"{module}.{name}")
        from penstock._tracing import _torch_names

        instead = instead or _torch_names.of_image(name)
        hint = f"use {instead}" if instead else _refusals.near(name, [known for known in FUNCTIONS if every or not is_numpy(known)])
        raise AttributeError(f"{module} has no function {name!r}" + (f"; {hint}" if hint else ""))
    raise AttributeError(name)


def names(own, looked_up):
    """What dir() of a module shows: its own names, and those that are looked up and are not NumPy's."""
    return sorted({*own, *looked_up})


@functools.lru_cache(maxsize=None)
def _make(name, shown):
    import inspect

    signature, doc = FUNCTIONS[name]

    def function(*args, **kwargs):
        return _language.call(name, args, kwargs, shown)

    function.__name__ = function.__qualname__ = shown.rpartition(".")[2]
    function.__module__ = shown.rpartition(".")[0]
    function.__signature__ = inspect.Signature(
        inspect.Parameter(parameter, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=inspect.Parameter.empty if default is ... else default)
        for parameter, default in PARAMETERS[name]
    )
    function.__doc__ = f"{signature}\n\n{doc}\n\nOn traced values: inside a function given to map."
    return function
