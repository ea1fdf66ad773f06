"""Methods of NumPy's arrays on traced values, and what stands for those that these lack."""

from penstock import _dtypes
from penstock._numpy import _dispatch, _taking
from penstock._numpy._shapes import transpose
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError


def _to_dense(x):
    """The values of a VarLenFeature as a list, which batches of any kind take."""
    if x.ndim != 1:
        raise TraceError("to_dense of a value of more than one axis", "batches that are sparse have to_dense() in the trainer")
    return x[:]


def _astype(x, dtype, order="K", casting="unsafe", subok=True, copy=True):
    if casting != "unsafe":
        raise TraceError(f"astype with casting={casting!r}", "what does not fit saturates (docs/expressions.md)")
    try:
        # A string, TensorFlow's and ml_dtypes' type, whose name NumPy does not know.
        name = "bfloat16" if getattr(dtype, "name", dtype) == "bfloat16" else getattr(_dtypes.as_dtype(dtype), "name", "")
    except TypeError as error:
        raise TraceError(f"astype({dtype!r}): {error}", "types are NumPy's, such as np.float32") from None
    return call(name, (x,), {}, f"astype({name})")


# What to use in the place of a method or an attribute that a traced value lacks.
INSTEAD_OF_METHODS = {
    "sort": "np.sort(x), which gives a new one",
    "fill": "np.full_like(x, value)",
    "item": "x[()] of a scalar is itself",
    "tolist": "the value itself: it is an array",
    "numpy": "the value itself: NumPy's functions take it",
    "view": "penstock.io.decode_raw of a string's bytes; x.astype(dtype) converts the values",
    "nbytes": "x.size, and the size of its type",
    "flat": "np.ravel(x)",
    "searchsorted": "np.searchsorted(x, v)",
    "put": "np.where(condition, a, b)",
    "get_shape": "x.shape",
    "real": "the value itself: there are no complex numbers",
    "imag": "zeros: there are no complex numbers",
    "conj": "the value itself: there are no complex numbers",
    "to": "x.astype(dtype)",
    "float": "x.astype(np.float32)",
    "permute": "np.transpose(x, axes)",
    "unsqueeze": "np.expand_dims(x, axis)",
    **{name: f"penstock.strings.{name}(x)" for name in ("lower", "upper", "strip")},
    "split": "penstock.strings.split(x, separator)",
    "replace": "penstock.strings.regex_replace(x, pattern, rewrite)",
    "decode": "x itself: texts are bytes in UTF-8",
    "encode": "x itself: texts are bytes in UTF-8",
    "startswith": 'penstock.strings.regex_full_match(x, "start.*")',
    "endswith": 'penstock.strings.regex_full_match(x, ".*end")',
    "format": "penstock.strings.join([a, b]), and penstock.strings.as_string of numbers",
}

# Methods of arrays that stand for functions of the same names.
METHODS = ("astype", "reshape", "transpose", "T", "clip", "round", "squeeze", "ravel", "flatten", "swapaxes", "copy",
           "sum", "mean", "min", "max", "prod", "std", "var", "any", "all", "argmax", "argmin", "repeat", "take",
           "cumsum", "cumprod", "argsort", "compress", "diagonal", "dot", "nonzero", "trace")  # fmt: skip


def method(x, name):
    """The method `name` of a traced value, or its value; None if there is none."""
    if name == "T":
        return transpose(x)._as_view_of(x)
    if name == "astype":
        return lambda *args, **kwargs: _astype(x, *args, **kwargs)
    if name in ("reshape", "transpose"):

        def variadic(*sizes, **kwargs):
            given = sizes if len(sizes) < 2 else (sizes,)
            return _dispatch.apply(name, (x, *given), kwargs, f".{name}()")

        return variadic
    if name == "flatten":
        return lambda *args, **kwargs: _dispatch.apply("ravel", (x, *args), kwargs, ".flatten()")._copied()
    if name == "compress":
        return lambda condition, axis=None, out=None: _taking.compress(condition, x, axis, out)
    if name == "to_dense":
        return lambda: _to_dense(x)
    if name not in METHODS or not _dispatch.knows(name):
        return None
    return lambda *args, **kwargs: _dispatch.apply(name, (x, *args), kwargs, f".{name}()")
