"""Generators of random numbers that a traced function may draw from by mistake: once, while it is traced, for all elements."""

import collections
import functools
import itertools
import pickle
import sys
import types
import warnings

import numpy as np

from penstock._spec._lines import is_users, user_line


def states(function=None):
    """The states of the generators that programs share, and of those that the function holds, by the names that these are called by; not of torch's
    where that is not loaded."""
    # NumPy loads its module at the first use, which may be the function's first draw: from its state that cannot be told.
    import random

    import numpy.random

    known = {}
    for name, made in _held(function):
        known.setdefault(f"the {type(made).__name__} {name}", []).append(_state_of(made))
    known["random"] = random.getstate()
    known["np.random"] = pickle.dumps(numpy.random.get_state(legacy=False))
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
            elif isinstance(_function_of(value), types.FunctionType) and is_users(_function_of(value).__code__.co_filename):
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


# Objects that are held in others, and how far inside, that are looked at.
_MAX_HELD, _MAX_ITEMS = 1000, 10_000
_MAX_DEPTH = 4
_PLAIN = {type(None), bool, int, float, complex, str, bytes, np.int64, np.float64, np.str_}


def _with_held(values, names):
    """The pairs, and those of what the values hold: the items of lists, tuples, sets and dicts, and the attributes that the function names (self.rng,
    module.rng, config.random.rng)."""
    found = list(values)
    level, seen = found, set()
    for _ in range(_MAX_DEPTH):
        inside = []
        for name, value in level:
            if id(value) in seen or len(seen) >= _MAX_HELD:
                continue
            seen.add(id(value))
            inside += _held_by(name, value, names)
        found += inside
        level = inside
    return found


def _held_by(name, value, names):
    kind = type(value)
    if isinstance(value, dict):
        items = ((f"[{key!r}]", inner) for key, inner in value.items())
    elif isinstance(value, (list, tuple, set, frozenset, collections.deque)):
        items = ((f"[{i}]", inner) for i, inner in enumerate(value))
    elif kind is np.ndarray and value.dtype == object:
        items = ((f"[{i}]", inner) for i, inner in enumerate(value.flat))
    else:
        # Neither properties are called, nor what __getattr__ makes is made.
        places = [getattr(value, "__dict__", {}), *(vars(of) for of in kind.__mro__ if _is_users_class(of))]
        found = [(inner, next(held[inner] for held in places if inner in held)) for inner in names if any(inner in held for held in places)]
        return [(inner, _of_slot(made, value)) for inner, made in found]
    kept = ((key, inner) for key, inner in itertools.islice(items, _MAX_ITEMS) if type(inner) not in _PLAIN)
    return [(f"{name}{key}", inner) for key, inner in kept]


def _of_slot(found, value):
    """What stands in a slot (__slots__); anything else as it is."""
    if type(found) is not types.MemberDescriptorType or isinstance(value, type):
        return found
    try:
        return found.__get__(value)
    except AttributeError:
        return None  # not set yet


def _is_users_class(kind):
    module = sys.modules.get(kind.__module__)
    return is_users(getattr(module, "__file__", None) or "") and kind is not object


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
        return _with_held(values, ())
    code = function.__code__
    for name, cell in zip(code.co_freevars, function.__closure__ or ()):
        try:
            values.append((name, cell.cell_contents))
        except ValueError:
            pass  # not set yet
    names = _names_in(code)
    values += [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    values += zip(reversed(code.co_varnames[: code.co_argcount]), reversed(function.__defaults__ or ()))
    values += (function.__kwdefaults__ or {}).items()
    return _with_held(values, names)


def _names_in(code):
    """The names of a function's code, and of functions inside of it."""
    names = list(code.co_names)
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            names += _names_in(inner)
    return dict.fromkeys(names)


def _is_generator(value):
    import random

    kind = type(value)
    # The ones that all share are known as random and np.random.
    if issubclass(kind, random.Random):
        return not issubclass(kind, random.SystemRandom) and value is not random._inst
    return issubclass(kind, np.random.Generator) or issubclass(kind, np.random.RandomState) and value is not np.random.mtrand._rand


def _state_of(made):
    if hasattr(made, "getstate"):
        return made.getstate()
    return pickle.dumps(made.get_state(legacy=False) if hasattr(made, "get_state") else made.bit_generator.state)


def _has_drawn(name):
    """Of a generator that was not there before: of torch, which the function has loaded."""
    if name != "torch":
        return False
    torch = sys.modules[name]
    if not hasattr(torch, "Generator"):
        return False
    fresh = torch.Generator().manual_seed(torch.initial_seed())
    return not torch.equal(fresh.get_state(), torch.get_rng_state())


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
