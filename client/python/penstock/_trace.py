"""Tracing: a function is called once with stand-ins for an element's tensors, which record what is done
to them as a graph of the expression language (docs/expressions.md).
"""

import math
import operator
import re
import sys
import threading
from typing import Any

import numpy as np

from penstock import _draws, _errors, _structure
from penstock._dtypes import string
from penstock._options import TensorSpec
from penstock._registry import FUNCTIONS
from penstock._stage import _STANDARD, Line, _is_users, user_line


class TraceError(_errors.InvalidArgumentError, TypeError):
    """A function given to map does something that cannot be part of a native pipeline."""

    def __init__(self, what, instead, line=None):
        line = line or user_line()
        text = line.text()
        super().__init__(f"{line}: {what}; {instead}" + (f"\n  {text}" if text else ""))

    def name_other_way(self, text):
        """Adds what else can be done, once."""
        if text not in self.args[0]:
            self.args = (f"{self.args[0]}\n  {text}", *self.args[1:])

    def __reduce__(self):
        # The text is made already, of a line that another process may not have.
        return _error_again, (type(self), *self.args)


def _error_again(kind, *args):
    return kind.__new__(kind, *args)


class TraceAttributeError(TraceError, AttributeError):
    """The same, of an attribute."""


# Of whom functions given to map are often objects, and what stands in their place.
_FRAMEWORKS = {
    "keras": "docs/migrating.md says what stands for Keras' layers; of the others batches are made in the trainer",
    "tensorflow": "docs/tf_functions_table.md says what stands for TensorFlow's functions",
    "torchvision": "docs/migrating.md says what stands for torchvision's transforms",
    "torch": "docs/migrating.md says what stands for a Dataset's transforms",
    "albumentations": "docs/migrating.md says what stands for torchvision's transforms, and for those that are alike",
}


def refuse_objects(function):
    """Objects that are called like functions, of packages that compute in Python: what they leave alone would be left as it is, unseen."""
    kind = type(function)
    package = kind.__module__.partition(".")[0]
    instead = _FRAMEWORKS.get("keras" if package == "tf_keras" else package)
    if instead is not None:
        raise TraceError(f"a {kind.__module__}.{kind.__qualname__} in the place of a function, which Python would run for each element", instead)


# What packages say of an argument's class.
_NAMES_STAND_IN = re.compile(r"\b(?:not|got|type) \(?Tensor\b|'Tensor'|\bTensor found\b")


def foreign_error(error):
    """What an exception of the user's function, which is no TraceError, says of traced values; None where it says nothing of them."""
    from penstock import _stage

    text = str(error)
    line = _stage.line_of_error(error)
    if isinstance(error, AttributeError) and text.startswith("'tuple' object has no attribute") or (
        isinstance(error, TypeError) and re.match(r"unsupported operand type.*'tuple'|can only concatenate tuple", text)
    ):
        instead = "np.shape(x) and x.shape are tuples where the sizes are known, as NumPy's; penstock.functions.shape(x) is a tensor"
    elif isinstance(error, TypeError) and "'NoneType'" in text:
        text = f"{text}: in x.shape a size that only the data tells is None"
        instead = "np.shape(x)[0] is each element's, and penstock.functions.arange(n) counts to it"
    elif "'<traced " in text and "integer" in text:
        text = "a traced value as a size of an array"
        instead = "a constant's sizes are known while tracing; np.pad(x, (0, n)) puts as many zeros behind x as the data tells"
    elif "<traced " in text or "(got Tensor)" in text or isinstance(error, TypeError) and _NAMES_STAND_IN.search(text):
        instead = "it is a stand-in for each element's tensor, which NumPy's functions and penstock's take, and other packages' do not"
    elif not error.__traceback__ or not _ends_in_package(error):
        return None
    else:
        instead = "other packages' functions do not take traced values: NumPy's and penstock's do; see docs/python.md"
    if line is not None and (known := _instead_in(line)):
        instead = known
    return TraceError(text, instead, line=line)


def result_of(function, element):
    """What the user's function returns for stand-ins, of which it gets the parts if they are a tuple. It is called once for all elements: draws
    are warned of, and other packages' objects and errors become TraceErrors."""
    refuse_objects(function)
    states = _draws.states(function)
    _calls.depth = getattr(_calls, "depth", 0) + 1
    try:
        result = function(*element) if isinstance(element, tuple) else function(element)
    except _errors.Error:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        if (traced := foreign_error(error)) is None:
            raise
        raise traced from error
    finally:
        _calls.depth -= 1
    _draws.warn_of_draws(states, function)
    return result


def _ends_in_package(error):
    from penstock import _stage

    traceback = error.__traceback__
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return _stage._PACKAGES.search(traceback.tb_frame.f_code.co_filename) is not None


def _instead_in(line):
    """What to write for what a line of code calls of TensorFlow, as a text; or None."""
    from penstock import _names

    known = _names.instead_in(line.text())
    return "NumPy's work on it: " + "; ".join(f"{instead} for tf.{name}" for name, instead in known) if known else None


class Captured(TraceError):
    """A function uses a value of another one's call: of one of these traces."""

    def __init__(self, *traces, what="a value of another function's call is used here", instead="pass it through the element"):
        super().__init__(what, instead)
        self.traces = traces

    def __reduce__(self):
        # Without the calls, which are over wherever it comes to.
        return _error_again, (TraceError, *self.args)


_OUTSIDE = "do it behind the loop, in the trainer, or before the data is written (penstock write)"


class Node:
    """A vertex of the graph; constant.

    Attributes:
      kind: "feature", "text" (what stands in an expression as it is), "array", "call", "subscript" or "made" (by a Python function).
      value: the feature's name, the text, the array, the function's name or operator, the subscript's
        text, in which "{1}" is the second of the inputs, a _python_calls.Call and the number of its result.
      inputs: Nodes.
      keywords: pairs of a name and a text, of a call; None in the place of a text for one of the last inputs.
      number: rises from inputs to what uses them.
    """

    __slots__ = ("kind", "value", "inputs", "keywords", "number")

    def __init__(self, trace, kind, value, inputs=(), keywords=()):
        self.kind = kind
        self.value = value
        self.inputs = tuple(inputs)
        self.keywords = tuple(keywords)
        trace.num_nodes += 1
        self.number = trace.num_nodes


# Of this thread: `traces`, the calls that it is in, the innermost last, and `depth`, how many functions of the user's it is in.
_calls = threading.local()


class Trace:
    """One call of a user's function, during which it is entered.

    Attributes:
      dataset: the one whose elements the function is given.
      parsed: None, or the features that the element was parsed into (a parse inside of the function).
      states: the TensorSpecs of features that are no part of the element, but of a state, by name.
    """

    # Whether it has called Python functions (_python_calls.py).
    has_calls = False

    def __init__(self, dataset):
        self.dataset = dataset
        self.num_nodes = 0
        self.features = []
        self.states = {}
        self.before = None
        self.parse_stage = None
        self.parsed_structure = None
        self._around = None
        self._adopted = {}
        self._types = None

    def __enter__(self):
        _calls.traces = [*getattr(_calls, "traces", ()), self]
        return self

    def __exit__(self, *error):
        _calls.traces = _calls.traces[:-1]

    def spec_of(self, node):
        """The TensorSpec of a value, which the daemon is asked for once."""
        return self._of_types().spec_of(node)

    def is_batched(self):
        """Whether the elements are batches, or may be."""
        return self._of_types()._dataset_rows() != 1

    def _of_types(self):
        if self._types is None:
            from penstock import _types

            self._types = _types.Types(self)
        return self._types

    def adopt(self, around):
        """Values of another call may be used, whose element is the second part of this one's."""
        self._around = around

    def adopts(self, trace):
        return self._around is trace

    def adopted(self, node):
        """A node of the other call as one of this one's."""
        known = self._adopted.get(node.number)
        if node.kind == "made":
            raise TraceError("the result of a Python function of another function's call is used here", "pass it through the element")
        if known is None:
            inputs = [self.adopted(inner) for inner in node.inputs]
            value = node.value
            if node.kind == "feature":
                value = "1" if self._around.dataset._structure is None else f"1/{value}"
            known = self._adopted[node.number] = Node(self, node.kind, value, inputs, node.keywords)
        return known

    def tensors_of(self, structure):
        """Stand-ins for the tensors of an element."""
        self.features = _structure.paths(structure)
        nodes = [Tensor(self, Node(self, "feature", name)) for name in self.features]
        return _structure.fill(structure, iter(nodes), make_dict=_Features)

    def parse(self, serialized, make_stage, structure):
        """The element becomes that of a stage which parses `serialized`."""
        if self.parse_stage is not None:
            raise TraceError("a function can parse its element once", "put the second one into a map of its own")
        self.before = (serialized._node, self.features)
        self.parse_stage = make_stage
        self.parsed_structure = structure
        return self.tensors_of(structure)

    def stale(self, node):
        """Whether a feature is one from before the parse."""
        return self.before is not None and node.number <= self.before[0].number


def is_identifier(name):
    return re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII) is not None and name not in (
        "True", "False", "None", "and", "or", "not", "if", "feature",
    )  # fmt: skip


def _quoted(text):
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _literal(value):
    """A Python value as it stands in an expression, or None."""
    if isinstance(value, (bool, np.bool_)):
        return "True" if value else "False"
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)) and math.isfinite(value):
        return repr(float(value))
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, bytes):
        try:
            return _quoted(value.decode())
        except UnicodeDecodeError:
            raise TraceError(f"{value!r} is no text in UTF-8", "a spec is text, and so are its constants") from None
    if isinstance(value, (list, tuple)):
        items = [_literal(item) for item in value]
        return None if None in items or not items else f"[{', '.join(items)}]"
    return None


def to_node(trace, value, what="an operand"):
    """The node of a traced value or a constant.

    Python's numbers are weak, as in NumPy 2; NumPy's scalars and arrays keep their types.
    """
    if isinstance(value, Tensor):
        if trace.adopts(value._trace):
            _require_unchanged(value)
            return trace.adopted(value._node)
        if value._trace is not trace:
            raise Captured(trace, value._trace)
        _require_unchanged(value)
        return value._node
    strings = _long_strings(value)
    if strings is not None:
        return Node(trace, "array", strings)
    if _holds_strings(value):
        return Node(trace, "text", _literal(value.tolist()))
    if isinstance(value, np.generic) or isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
        if value.dtype.name not in FUNCTIONS:
            raise TraceError(f"{what} is a constant of type {value.dtype.name}", "cast it to one of NumPy's numbers")
        text = None if value.dtype.name in _HALVES else _literal(value)
        if text is not None and value.dtype != bool:
            return Node(trace, "call", value.dtype.name, [Node(trace, "text", text)])
        if text is None:
            return _array(trace, value)
    if isinstance(value, float) and not math.isfinite(value):
        return Node(trace, "array", value)
    if isinstance(value, (list, tuple)) and find_trace(value) is not None:
        # [height, width] of which one is traced.
        return to_node(trace, packed(value), what)
    if isinstance(value, (list, tuple)) and _are_flags(value):
        # The language's own lists hold numbers.
        value = np.asarray(value)
    if isinstance(value, np.ndarray):
        if value.dtype.name not in FUNCTIONS or value.size == 0:
            raise TraceError(
                f"{what} is an array of type {value.dtype.name} and shape {value.shape}",
                "constants are arrays of numbers with elements",
            )
        # As it is now: the function may write into it behind this.
        return _array(trace, value.copy())
    if not isinstance(value, (np.ndarray, np.generic)) and hasattr(type(value), "__array__"):
        # Of another package: a tensor that is not traced, a column of a table.
        return to_node(trace, np.asarray(value), what)
    if isinstance(value, int) and not -(1 << 63) <= value < 1 << 64:
        raise TraceError(f"{what} is an integer that no type holds", "integers go from -2**63 to 2**64 - 1; a float may be larger")
    text = _literal(value)
    if text is None:
        if isinstance(value, (list, tuple)) and any(item is None for item in value):
            raise TraceError(f"{what} is {value}, where None is a size that only the data tells", "np.shape(x)[0] is each element's")
        kind = type(value)
        raise TraceError(
            f"{what} is of type {kind.__module__}.{kind.__qualname__}",
            "constants are numbers and NumPy arrays; " + _OUTSIDE,
        )
    return Node(trace, "text", text)


# Strings that together are longer are constants of the stage, not part of its expressions.
_LONG_TEXT = 4 << 10


def _long_strings(value):
    """The array of a text, or of a list or an array of texts, that is long: of bytes, as objects. Else None."""
    if isinstance(value, (str, bytes)):
        items, shape = [value], ()
    elif _holds_strings(value):
        items, shape = np.ravel(value).tolist(), np.shape(value)
    elif isinstance(value, (list, tuple)) and value and all(isinstance(item, (str, bytes)) for item in value):
        items, shape = value, (len(value),)
    else:
        return None
    if sum(map(len, items)) <= _LONG_TEXT:
        return None
    array = np.empty(len(items), object)
    array[:] = [item.encode() if isinstance(item, str) else item for item in items]
    return array.reshape(shape)


def packed(value):
    """An array; of a list that holds traced values one traced value, as np.stack joins them."""
    if isinstance(value, (list, tuple)) and find_trace(value) is not None:
        return np.stack([item if isinstance(item, Tensor) else packed(item) for item in value])
    return np.asarray(value)


# Parameters that are computed with, where a list's type counts; of others, sizes for one, only its numbers do.
_OPERANDS = {"x", "a", "b", "c", "d", "y", "v", "w", "low", "high", "on_value", "off_value", "weights", "image", "mean", "std"}


def _with_type(value):
    """A list that holds NumPy's scalars as the array that NumPy makes of it; anything else as it is."""
    if isinstance(value, (list, tuple)) and find_trace(value) is None and _holds_scalars(value):
        array = np.asarray(value)
        return array if array.dtype.name in FUNCTIONS else value
    return value


def _holds_scalars(values):
    return any(_holds_scalars(value) if isinstance(value, (list, tuple)) else isinstance(value, (np.generic, np.ndarray)) for value in values)


def _are_flags(values):
    return bool(values) and all(
        _are_flags(value) if isinstance(value, (list, tuple)) else isinstance(value, (bool, np.bool_)) for value in values
    )


# A spec has no constants of these; what they hold, float32 holds too.
_HALVES = ("float16", "bfloat16")


def _array(trace, value):
    if not value.dtype.isnative:
        value = value.astype(value.dtype.newbyteorder("="))
    if value.dtype.name not in _HALVES:
        return Node(trace, "array", value)
    return Node(trace, "call", value.dtype.name, [Node(trace, "array", value.astype(np.float32))])


def find_trace(values):
    """The trace of the traced values in nested lists, tuples and dicts, or None. Of several, the one whose function uses another's."""
    trace = None
    for value in values:
        if isinstance(value, Tensor):
            found = value._trace
        else:
            if isinstance(value, dict):
                value = list(value.values())
            found = find_trace(value) if isinstance(value, (list, tuple)) else None
        if trace is None or found is not None and found.adopts(trace):
            trace = found
    return trace


class _Features(dict):
    """A part of an element that a traced function gets: it names what there is when asked for what is not."""

    def __missing__(self, key):
        hint = near(key, list(self)) if isinstance(key, str) else None
        raise FeatureError(f"the element has no feature {key!r}; {hint or 'it has ' + listed(map(repr, self))}")


class FeatureError(KeyError):
    """KeyError, whose message is shown as it is."""

    def __str__(self):
        return self.args[0]


def listed(names):
    """The names with commas between them; of more than 16 the first ones, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - 16} more" if len(names) > 16 else ""
    return ", ".join(names[:16]) + more


def near(name, known):
    import difflib

    matches = difflib.get_close_matches(name, known, n=2)
    return f"did you mean {' or '.join(matches)}?" if matches else None


_parameters = {}


def parameters(name):
    """Pairs of a parameter's name and its default of the function `name`; ... where there is none."""
    found = _parameters.get(name)
    if found is None:
        import ast

        arguments = ast.parse(f"def {FUNCTIONS[name][0]}: pass").body[0].args
        names = [argument.arg for argument in arguments.args]
        defaults = [ast.literal_eval(default) for default in arguments.defaults]
        found = list(zip(names, [...] * (len(names) - len(defaults)) + defaults))
        if arguments.vararg is not None:
            found.append(("*" + arguments.vararg.arg, ...))
        _parameters[name] = found
    return found


# Arguments of TensorFlow's and NumPy's functions that ours lack, with the values that mean nothing.
_NEUTRAL = {
    "name": (None,),
    "out": (None,),
    "keepdims": (False,),
    "dtype": (None,),
    "casting": ("same_kind",),
    "order": ("C", "K", None),
    "preserve_aspect_ratio": (False,),
    "antialias": (False,),
    "try_recover_truncated": (False,),
    "acceptable_fraction": (1, 1.0),
    "subok": (True,),
    "where": (True,),
}
# TensorFlow's and NumPy's names of parameters, by ours.
_SYNONYMS = {"images": "image", "a_min": "low", "a_max": "high", "min": "low", "max": "high", "newshape": "shape", "correction": "ddof"}


def _holds_strings(value):
    """Whether it is an array of texts, or NumPy's of one text."""
    return isinstance(value, (np.str_, np.bytes_)) or isinstance(value, np.ndarray) and value.size > 0 and (
        value.dtype.kind in "SU" or value.dtype == object and all(isinstance(word, (str, bytes)) for word in value.flat)
    )  # fmt: skip


def _are_words(value):
    """Whether texts can be looked up in it: several that differ."""
    return _holds_strings(value) and np.ndim(value) == 1 and len({*value.tolist()}) == len(value)


def _compare_with_words(name, args, shown):
    """A traced string beside an array of words that differ: a flag for each word."""
    words, text = args if _holds_strings(args[0]) else reversed(args)
    words = vocabulary(texts(words))
    number = call("string_lookup", (text,), {"vocabulary": words, "default": -1}, shown)
    return call(name, (number, np.arange(len(words))), {}, shown)


def texts(words):
    """The texts of an array of them, as str."""
    return [word if isinstance(word, str) else bytes(word).decode() for word in words.ravel().tolist()]


def vocabulary(words):
    """The words as `string_lookup` takes them."""
    if len(set(words)) < len(words):
        seen = set()
        twice = next(word for word in words if word in seen or seen.add(word))
        raise TraceError(f"{twice!r} stands twice in the array of words", "words of a vocabulary differ")
    return list(words)


def call(name, args, kwargs, shown=None):
    """A call of the expression language's function `name`; `shown` is what the user has called."""
    shown = shown or name
    if name in ("equal", "not_equal") and any(_are_words(arg) for arg in args):
        return _compare_with_words(name, args, shown)
    trace = find_trace(list(args) + list(kwargs.values()))
    if trace is None and name in FUNCTIONS and all(default is not ... for _, default in parameters(name)):
        # One that draws takes no tensor.
        trace = next(reversed(getattr(_calls, "traces", ())), None)
    if trace is None:
        raise TraceError(f"{shown} is called without a traced value", "it works inside a function given to map")
    if name not in FUNCTIONS:
        raise TraceError(f"{shown} is not part of the expression language", near(name, FUNCTIONS) or _OUTSIDE)
    known = parameters(name)
    variadic = bool(known) and known[-1][0].startswith("*")
    names = [parameter for parameter, _ in known if not parameter.startswith("*")]
    if len(args) > len(names) and not variadic:
        raise TraceError(f"{shown} takes {len(names)} arguments, not {len(args)}", f"it is {FUNCTIONS[name][0]}")
    given = dict(zip(names, args))
    rest = list(args[len(names) :])
    for key, value in kwargs.items():
        key = key if key in names else _SYNONYMS.get(key, key)
        if key in names:
            if key in given:
                raise TraceError(f"{shown} is given {key} twice", f"it is {FUNCTIONS[name][0]}")
            given[key] = value
        elif not any(type(value) is type(neutral) and value == neutral for neutral in _NEUTRAL.get(key, ())):
            raise TraceError(f"{shown} has no argument {key}={value!r}", f"it is {FUNCTIONS[name][0]}")
    inputs, keywords, named, positional = [], [], [], True
    for parameter, default in known:
        if parameter.startswith("*"):
            continue
        if parameter not in given:
            if default is ...:
                raise TraceError(f"{shown} lacks the argument {parameter}", f"it is {FUNCTIONS[name][0]}")
            positional = False
            continue
        value = given[parameter]
        if value is None and default is ...:
            raise TraceError(f"{shown}: {parameter} is None", f"it is {FUNCTIONS[name][0]}")
        if parameter in ("dtype", "out_type") and not isinstance(value, str):
            # NumPy's types and dtypes, and TensorFlow's.
            value = np.dtype(getattr(value, "as_numpy_dtype", value)).name
        if parameter == "axis":
            value = _counted_from_last(value, given.get("x", given.get("a")), name)
        if parameter == "shape" and default is None and isinstance(value, (list, tuple)) and not value:
            # Left out, it is a scalar's.
            value = None
        if value is None or default is not ... and not isinstance(value, (Tensor, np.ndarray)) and value == default:
            positional = False
        elif positional:
            value = _with_type(value) if parameter in _OPERANDS else value
            inputs.append(to_node(trace, value, f"{shown}: {parameter}"))
        elif find_trace([value]) is not None:
            named.append(to_node(trace, value, f"{shown}: {parameter}"))
            keywords.append((parameter, None))
        else:
            text = _literal(value.tolist() if isinstance(value, np.ndarray) else value)
            if text is None:
                raise TraceError(f"{shown}: {parameter} is not a constant", f"it is {FUNCTIONS[name][0]}")
            keywords.append((parameter, text))
    inputs += [to_node(trace, _with_type(value), shown) for value in rest] + named
    return Tensor(trace, Node(trace, "call", name, inputs, keywords))


def _counted_from_last(axis, array, name):
    """An axis as the language has it, whose rows may be of a batch: from -1 down. Others stay as they are, to be refused."""
    if isinstance(axis, bool) or not isinstance(axis, (int, np.integer)) or axis < 0 or not isinstance(array, (Tensor, np.ndarray)):
        return axis
    ndim = array.ndim + (name == "stack")  # which makes a new one
    return int(axis) - ndim if axis < ndim else axis


def _binary(name, swap=False):
    def method(self, other):
        return call(name, (other, self) if swap else (self, other), {}, f"operator {_SYMBOLS[name]}")

    return method


def _both_sides(name):
    return _binary(name), _binary(name, swap=True)


def _unary(name):
    return lambda self: call(name, (self,), {})


def _in_place(symbol, operate):
    """`x += y`: a new value of x's type, as NumPy's is. What else holds x, or shares memory with it in NumPy, is refused from then on."""

    def method(self, other):
        result = operate(self, other)
        held = self._spec()
        if not held.shape:
            # NumPy's scalars cannot be changed: the name stands for another one.
            return result
        shown = f"x {symbol}= y of a traced {getattr(held.dtype, 'name', held.dtype)}"
        instead = f"write x = x {symbol} y, which makes a new value"
        if type(result) is not Tensor:
            raise TraceError(f"{shown} with a spectrum", instead)
        found = result._spec()
        if len(found.shape) != len(held.shape) or any(None not in sizes and sizes[0] != sizes[1] for sizes in zip(found.shape, held.shape)):
            raise TraceError(f"{shown} of shape {held.shape}, whose result has the shape {found.shape}", instead)
        name, of_result = (getattr(dtype, "name", dtype) for dtype in (held.dtype, found.dtype))
        if of_result != name:
            if not np.can_cast(_plain(of_result), _plain(name), "same_kind"):
                raise TraceError(f"{shown}, whose result is {of_result}, which does not become {name} again", instead)
            result = result.astype(held.dtype)
        line = user_line()
        tensor = self
        while tensor is not None:
            tensor._changed = line, symbol
            tensor = tensor._base
        return result

    return method


def _plain(name):
    """A type of NumPy's that is cast as the type of that name is."""
    return "float16" if name == "bfloat16" else name


def _require_unchanged(tensor):
    """Refuses a value that an operator such as += has changed by another name, or through a view."""
    changed, way = tensor, []
    while changed is not None and changed._changed is None:
        way.append(changed)
        changed = changed._base
    # A subscript that gives a number copies it.
    if changed is None or any(not view.shape for view in way):
        return
    line, symbol = changed._changed
    raise TraceError(
        f"{symbol}= of a traced value that is used afterwards by another name, in its element, or as a view of it or what it is a view of: "
        "a traced value cannot be changed in place, and what else holds it would not see it",
        f"write x = x {symbol} y, which makes a new value, or change x.copy()",
        line=line,
    )


# Packages whose code shows values to people: debuggers, tests, logs.
_SHOWING = set(
    "IPython _pydev_bundle _pydevd_bundle _pytest bdb cmd code debugpy icecream inspect logging loguru pdb pluggy pprint ptpython pydevd pytest reprlib rich "
    "traceback unittest".split()
)


def refuse_text():
    """Refuses that a stand-in becomes text (str, repr, an f-string, %) in the user's code, where that would get into the data, once for all elements.
    Debuggers, logs and print may show it."""
    if not getattr(_calls, "depth", 0):
        return
    frame = sys._getframe(2)
    module = frame.f_globals.get("__name__", "").partition(".")[0]
    if module in _SHOWING or not _is_users(frame.f_code.co_filename):
        return
    callee = _callee(frame)
    if callee is print or getattr(callee, "__module__", None) and callee.__module__.startswith("numpy"):
        # NumPy writes it into an error's message.
        return
    raise TraceError(
        "a traced value as text (str, repr, an f-string, format, %), which would be its description, once for all elements",
        'penstock.strings.as_string(x) is the text of each element\'s number, x + "_" + y and penstock.strings.join put texts together; print, logging and '
        "breakpoint() show the stand-in",
        line=_line_outside_of_python(frame),
    )


def _line_outside_of_python(frame):
    """The innermost line on the stack that is none of Python's own modules: string.Template is one."""
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_STANDARD):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)


# Names by which code makes texts.
_MAKES_TEXT = {"ascii", "format", "format_map", "join", "repr", "str"}


def _callee(frame):
    """The function that a frame calls now; None where it calls none, or nobody knows which."""
    import ast
    import builtins
    import dis
    import itertools
    import linecache

    code = frame.f_code
    if not dis.opname[code.co_code[frame.f_lasti]].startswith("CALL"):
        return None
    positions = code.co_positions() if hasattr(code, "co_positions") else ()
    line, end_line, column, end = next(itertools.islice(positions, frame.f_lasti // 2, None), (None,) * 4)
    if None in (line, end_line, column, end) or not linecache.getline(code.co_filename, line):
        # Python 3.9 and 3.10 do not tell where in its source it is, and some code has none.
        names = {*code.co_names}
        return None if names & _MAKES_TEXT else print if "print" in names else np.ndarray if names & {"np", "numpy"} else None
    lines = [linecache.getline(code.co_filename, number).encode() for number in range(line, end_line + 1)]
    lines[-1] = lines[-1][:end]
    try:
        called = ast.parse(b"(" + b"".join(lines)[column:] + b")", mode="eval").body
    except SyntaxError:
        return None
    names, called = [], getattr(called, "func", None)
    while isinstance(called, ast.Attribute):
        names.append(called.attr)
        called = called.value
    if not isinstance(called, ast.Name):
        return None
    found = {**vars(builtins), **frame.f_globals, **frame.f_locals}.get(called.id)
    for name in reversed(names):
        found = getattr(found, name, None)
    return found


def _refused(what, instead):
    def method(self, *args, **kwargs):
        raise TraceError(what, instead)

    return method


_SYMBOLS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">", "greater_equal": ">=",
    "bitwise_or": "|", "bitwise_xor": "^", "bitwise_and": "&", "add": "+", "subtract": "-", "multiply": "*",
    "divide": "/", "floor_divide": "//", "remainder": "%", "power": "**", "left_shift": "<<", "right_shift": ">>",
}  # fmt: skip


class Tensor:
    """A stand-in for a tensor of each element, inside a function given to map.

    It takes NumPy's operators, indexing, methods and functions; what is done to it happens later, in the
    daemon. `shape`, `ndim` and `dtype` ask the daemon.
    """

    __slots__ = ("_trace", "_node", "_base", "_changed")
    # Before NumPy's and torch's arrays in mixed operations.
    __array_priority__ = 1000

    def __init__(self, trace, node):
        self._trace = trace
        self._node = node
        self._base = None  # the value whose memory NumPy's would share, of a view
        self._changed = None  # the line and the operator that changed it in place

    __or__, __ror__ = _both_sides("bitwise_or")
    __xor__, __rxor__ = _both_sides("bitwise_xor")
    __and__, __rand__ = _both_sides("bitwise_and")
    __add__, __radd__ = _both_sides("add")
    __sub__, __rsub__ = _both_sides("subtract")
    __mul__, __rmul__ = _both_sides("multiply")
    __truediv__, __rtruediv__ = _both_sides("divide")
    __floordiv__, __rfloordiv__ = _both_sides("floor_divide")
    __mod__, __rmod__ = _both_sides("remainder")
    __pow__, __rpow__ = _both_sides("power")
    __lshift__, __rlshift__ = _both_sides("left_shift")
    __rshift__, __rrshift__ = _both_sides("right_shift")
    __eq__ = _binary("equal")
    __ne__ = _binary("not_equal")
    __lt__ = _binary("less")
    __le__ = _binary("less_equal")
    __gt__ = _binary("greater")
    __ge__ = _binary("greater_equal")
    __neg__ = _unary("negative")
    __invert__ = _unary("invert")
    __abs__ = _unary("abs")
    __ior__ = _in_place("|", operator.or_)
    __ixor__ = _in_place("^", operator.xor)
    __iand__ = _in_place("&", operator.and_)
    __iadd__ = _in_place("+", operator.add)
    __isub__ = _in_place("-", operator.sub)
    __imul__ = _in_place("*", operator.mul)
    __itruediv__ = _in_place("/", operator.truediv)
    __ifloordiv__ = _in_place("//", operator.floordiv)
    __imod__ = _in_place("%", operator.mod)
    __ipow__ = _in_place("**", operator.pow)
    __ilshift__ = _in_place("<<", operator.lshift)
    __irshift__ = _in_place(">>", operator.rshift)
    __imatmul__ = _in_place("@", operator.matmul)

    def __pos__(self):
        return self._copied()

    def _copied(self):
        """The same value, which shares no memory with it."""
        _require_unchanged(self)
        return Tensor(self._trace, self._node)

    def _as_view_of(self, base):
        """The same value, which shares NumPy's memory with `base`."""
        if self is not base:
            self._base = base
        return self

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def __matmul__(self, other):
        return _products().matmul(self, other, shown="operator @")

    def __rmatmul__(self, other):
        return _products().matmul(other, self, shown="operator @")

    def __round__(self, digits=None):
        return np.round(self).astype(np.int64) if digits is None else np.round(self, digits)

    __bool__ = _refused(
        "the truth of a traced value (if, while, and, or, not, x < y < z, in) is not known while tracing",
        "use np.where(condition, a, b), and &, |, ~ in conditions",
    )
    __hash__ = _refused(
        "a traced value as a key of a dict or a set (table[x], hash(x), x in a set)",
        "penstock.functions.take(table, x, axis=0) looks x up in an array, and (x == a) | (x == b) compares",
    )
    __bytes__ = _refused("bytes() of a traced value", "penstock.io.decode_raw(x, np.uint8) are a string's bytes as numbers")
    __int__ = _refused("int() of a traced value", "use x.astype(np.int64)")
    __float__ = _refused("float() of a traced value", "use x.astype(np.float32)")
    __complex__ = _refused("complex() of a traced value", "there are no complex numbers")
    __index__ = _refused(
        "a traced value as an index, a size or a count",
        "these are constants; penstock.functions.take(table, x, axis=0) is table[x], np.where chooses between values, "
        "penstock.functions.arange(n) counts to n, and np.pad(x, (0, n)) puts as many zeros behind x as the data tells",
    )
    __len__ = _refused("len() of a traced value", "use np.shape(x)[0]")
    __iter__ = _refused(
        "a for loop or unpacking over a traced value", "use NumPy's functions, which work on the whole of it, or x[0], x[1]"
    )
    __contains__ = _refused("`in` on a traced value", "compare, and reduce the result")
    __setitem__ = _refused("an assignment into a traced value", "use np.where(condition, a, b), which gives a new one")
    def __array__(self, dtype=None, copy=None):
        line = user_line()
        if known := _instead_in(line):
            raise TraceError("TensorFlow's functions of a traced value", known, line=line)
        if re.search(r"\barange\(", line.text()):
            raise TraceError("np.arange of a traced value", "penstock.functions.arange(start, stop, step) counts as far as the data tells", line=line)
        # NumPy does not ask what the indices of np.take are.
        looked_up = re.search(r"\btake\(|[\w)]\[", line.text())
        table = "penstock.functions.take(table, x, axis=0) for table[x] and np.take(table, x) of an array"
        others = "NumPy's functions and penstock.image, penstock.io on it, x.astype(np.float32), np.stack to join several"
        raise TraceError(
            "the conversion of a traced value to an array (np.asarray, np.float32(x), torch, PIL, a ufunc of another package)",
            f"use {f'{table}; {others}' if looked_up else f'{others}, and {table}'}; or {_OUTSIDE}",
            line=line,
        )

    @property
    def __class__(self):
        # torchvision's transforms hand on, as it is and without a word, what is none of their own types.
        if sys._getframe(1).f_globals.get("__name__", "").startswith("torchvision."):
            raise TraceError("a transform of torchvision, which does nothing to a traced value", _FRAMEWORKS["torchvision"])
        return type(self)

    __enter__ = _refused("a with statement over a traced value", _OUTSIDE)
    __call__ = _refused("a call of a traced value", _OUTSIDE)

    def __getitem__(self, index):
        from penstock import _indexing

        items = _indexing.without_numbers_in_arrays(index if isinstance(index, tuple) else (index,))
        if any(isinstance(item, Tensor) for item in items):
            if _indexing.is_along_one_axis(items):
                result = _indexing.by_traced(self, items)
                return result if items[-1].dtype == bool or items[-1].ndim else result._as_view_of(self)
        elif _indexing.has_arrays(items):
            return _indexing.by_arrays(self, items)
        result = self._subscripted(items)
        return result if any(isinstance(item, (list, np.ndarray)) for item in items) else result._as_view_of(self)

    def _subscripted(self, items):
        """The subscript that the language has: by integers, slices, ..., None, and one list of integers."""
        values = [self]
        text = ", ".join(_subscript(item, values) for item in items)
        if not text:
            return self
        trace = find_trace(values)
        return Tensor(trace, Node(trace, "subscript", text, [to_node(trace, value) for value in values]))

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        from penstock import _numpy

        return _numpy.call_ufunc(ufunc, method, inputs, kwargs)

    def __array_function__(self, func, types, args, kwargs):
        from penstock import _numpy

        return _numpy.call_function(func, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        # Functions that take the tensor first are methods, as NumPy's are.
        if not name.startswith("_"):
            from penstock import _numpy

            method = _numpy.method(self, name)
            if method is not None:
                return method
        elif name != "__array_interface__":
            raise AttributeError(name)
        raise TraceAttributeError(
            f"attribute .{name} of a traced value", _instead_of_method(name)
        )

    @property
    def shape(self):
        """The sizes of the axes; None where only the data tells one."""
        return self._spec().shape

    @property
    def dtype(self):
        return self._spec().dtype

    @property
    def ndim(self):
        return len(self.shape)

    @property
    def size(self):
        if None in self.shape:
            raise TraceError("the size of a value that only the data tells", "np.size(x) is each element's")
        return math.prod(self.shape)

    def set_shape(self, shape):
        """As tf.Tensor.set_shape: says what the data alone would tell. Elements of another shape are an error."""
        if self._node.kind == "made":
            python, number = self._node.value
            if not python.is_declared(number):
                python.declare(number, TensorSpec(shape, string).shape)
                return
        self._node = call("ensure_shape", (self, list(shape)), {}, ".set_shape()")._node

    def _spec(self):
        return self._trace.spec_of(self._node)

    def __repr__(self):
        refuse_text()
        return f"<traced {self._node.kind} {self._node.value}>"

    __str__ = __repr__

    def __format__(self, spec):
        refuse_text()
        return format(repr(self), spec)


def _products():
    from penstock import _products

    return _products


def _instead_of_method(name):
    from penstock import _numpy

    instead = _numpy.INSTEAD_OF_METHODS.get(name)
    if instead is not None:
        return f"use {instead}"
    return near(name, _numpy.METHODS) or "it has NumPy's operators; " + _OUTSIDE


# Longer lists in a subscript are constants of their stage: a spec's texts are short.
_MAX_WRITTEN = 64


def _subscript(item, values):
    """An item's text; traced integers and long lists in it are added to `values`, whose places stand for them."""
    if item is None:
        return "None"
    if item is Ellipsis:
        return "..."
    if isinstance(item, slice):
        if isinstance(item.step, Tensor):
            raise TraceError("a traced value as a slice's step", "steps are constants")
        parts = ["" if part is None else _index(part, values) for part in (item.start, item.stop, item.step)]
        return ":".join(parts if parts[2] else parts[:2])
    if isinstance(item, (list, np.ndarray)):
        array = np.asarray(item)
        if array.ndim != 1 or array.dtype.kind not in "iu" or array.size == 0:
            raise TraceError(
                f"a subscript that is an array of {array.dtype.name} and shape {array.shape}",
                "beside traced integers one list of integers is allowed; np.where chooses by a condition",
            )
        if array.size <= _MAX_WRITTEN:
            return f"[{', '.join(map(str, array.tolist()))}]"
        values.append(array.astype(np.int64))
        return f"{{{len(values) - 1}}}"
    return _index(item, values)


def _index(item, values):
    if isinstance(item, (bool, np.bool_)):
        raise TraceError("a subscript by a lone flag", "use np.where(condition, a, b)")
    if isinstance(item, str):
        raise TraceError(f"the subscript {item!r} of a tensor", "the element has no structure there")
    if isinstance(item, Tensor):
        if getattr(item.dtype, "kind", "") not in ("i", "u") or item.ndim > 0:
            raise TraceError(
                f"a traced {getattr(item.dtype, 'name', item.dtype)} of shape {item.shape} in a subscript beside others",
                "there it is one integer; np.take(x, indices, axis) takes of one axis",
            )
        values.append(item)
        return f"{{{len(values) - 1}}}"
    if not hasattr(item, "__index__"):
        raise TraceError(f"the subscript {item!r}", "subscripts are integers, slices, ..., None and lists of integers")
    return str(operator.index(item))
