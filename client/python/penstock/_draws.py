"""Generators of random numbers that a traced function may draw from by mistake: once, while it is traced, for all elements."""

import functools
import pickle
import sys
import types
import warnings

import numpy as np

from penstock._stage import _is_users, user_line


# The places of a Mersenne Twister that has not drawn yet: NumPy's, which is seeded by the system, and Python's.
_FRESH = (623, 624)


def states(function=None):
    """The states of the generators that programs share, and of those that the function holds, by the names that these are called by; not of packages
    that are not loaded."""
    known = {}
    for name, made in _held(function):
        known.setdefault(f"the {type(made).__name__} {name}", []).append(_state_of(made))
    if (random := sys.modules.get("random")) is not None:
        known["random"] = random.getstate()
    if "numpy.random" in sys.modules:
        known["np.random"] = pickle.dumps(np.random.get_state(legacy=False))
    torch = sys.modules.get("torch")
    if hasattr(torch, "get_rng_state"):
        known["torch"] = torch.get_rng_state().numpy().tobytes()
    return known


# More functions than these, which one calls, are not looked through.
_MAX_FUNCTIONS = 64


def _held(function):
    """Names and generators that a function, and those of the user's that it names, reach by variables, attributes of these, defaults, the attributes of
    their objects, and what partial() gives them. Once each."""
    found, waiting, seen = {}, [function], set()
    while waiting and len(seen) < _MAX_FUNCTIONS:
        function = waiting.pop()
        if id(function) in seen:
            continue
        seen.add(id(function))
        for name, value in _values_of(function):
            if type(value) in (types.BuiltinMethodType, types.MethodType) and _is_generator(value.__self__):
                # draw = rng.random
                value = value.__self__
            if _is_generator(value):
                found.setdefault(id(value), (name, value))
            elif isinstance(_function_of(value), types.FunctionType) and _is_users(_function_of(value).__code__.co_filename):
                waiting.append(value)
    return found.values()


def _function_of(value):
    """The Python function that a call of the value calls, or None."""
    kind = type(value)
    if kind is functools.partial:
        return _function_of(value.func)
    if kind is types.MethodType:
        return value.__func__
    return value if kind is types.FunctionType else getattr(kind, "__call__", None)


def _values_of(function):
    """Pairs of a name and a value."""
    values = []
    while type(function) is functools.partial:
        values += [*(("", value) for value in function.args), *function.keywords.items()]
        function = function.func
    if type(function) is not types.FunctionType:
        values += getattr(getattr(function, "__self__", function), "__dict__", {}).items()
        function = _function_of(function)
    if not isinstance(function, types.FunctionType):
        return values
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            values.append((name, cell.cell_contents))
        except ValueError:
            pass  # not set yet
    names = _names_in(code)
    values += [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    # module.rng, self.rng
    inside = [getattr(value, "__dict__", None) for _, value in values]
    values += [(name, held[name]) for held in inside if isinstance(held, dict) for name in names if name in held]
    values += zip(reversed(code.co_varnames[: code.co_argcount]), reversed(function.__defaults__ or ()))
    values += (function.__kwdefaults__ or {}).items()
    return values


def _names_in(code):
    """The names of a function's code, and of functions inside of it."""
    names = list(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            names += _names_in(inner)
    return dict.fromkeys(names)


def _is_generator(value):
    kind, random = type(value), sys.modules.get("random")
    # The ones that all share are known as random and np.random.
    if random is not None and issubclass(kind, random.Random):
        return not issubclass(kind, random.SystemRandom) and value is not random._inst
    if "numpy.random" not in sys.modules:
        return False
    return issubclass(kind, np.random.Generator) or issubclass(kind, np.random.RandomState) and value is not np.random.mtrand._rand


def _state_of(made):
    if hasattr(made, "getstate"):
        return made.getstate()
    return pickle.dumps(made.get_state(legacy=False) if hasattr(made, "get_state") else made.bit_generator.state)


def _has_drawn(name):
    """Of a generator that was not there before."""
    if name == "np.random":
        return np.random.get_state(legacy=False)["state"].get("pos", _FRESH[0]) not in _FRESH
    return name == "random" and sys.modules[name].getstate()[1][-1] not in _FRESH


def warn_of_draws(before, function=None):
    """Says which generators have drawn since then."""
    drawn = [name for name, state in states(function).items() if (before[name] != state if name in before else _has_drawn(name))]
    if drawn:
        line = user_line()
        warnings.warn_explicit(
            f"the function draws by {' and '.join(drawn)} while it is traced, which is once for all elements; penstock.functions.random_uniform, "
            "random_normal and random_beta, and penstock.image.random_…, draw for each",
            RuntimeWarning,
            line.file,
            line.number,
        )
