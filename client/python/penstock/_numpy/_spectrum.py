"""Complex numbers as np.fft.rfft of a traced value gives them: what is asked of a spectrum, by its two parts."""

import numpy as np

from penstock._numpy._axes import to_axis, to_integer
from penstock._tracing import _refusals, _showing, _trace
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError


def rfft(a, n=None, axis=-1, norm=None, out=None):
    """np.fft.rfft of a traced value: a Spectrum. In float64, rounded to the type of the values."""
    shown = "np.fft.rfft"
    if out is not None or norm not in (None, "backward", "ortho", "forward"):
        raise TraceError(f"{shown} with norm={norm!r}, or into an array", 'norms are "backward", "ortho" and "forward"')
    axis = to_axis(axis, a.ndim, shown)
    moved = a if axis == a.ndim - 1 else np.moveaxis(a, axis, -1)
    size = to_integer(n, f"{shown} of") if n is not None else moved.shape[-1]
    if size is None:
        raise TraceError(f"{shown} along an axis of a size that only the data tells", f"{shown}(x, n)")
    parts = call("rfft", (moved if moved.dtype.kind == "f" else moved.astype(np.float64), size), {}, shown)
    if norm in ("ortho", "forward"):
        parts = parts * float(1 / size if norm == "forward" else 1 / np.sqrt(size))
    spectrum = Spectrum(parts)
    return spectrum if axis == a.ndim - 1 else spectrum._moved(axis)


class Spectrum:
    """Complex numbers; constant. NumPy's abs, angle, real, imag, conj, square of abs, products with real numbers, sums, and subscripts."""

    __slots__ = ("_parts",)
    __array_priority__ = 1000

    def __init__(self, parts):
        self._parts = parts

    def __repr__(self):
        _showing.refuse_text()
        return f"<traced spectrum of {self._parts!r}>"

    __str__ = __repr__

    def __format__(self, spec):
        _showing.refuse_text()
        return format(repr(self), spec)

    @property
    def real(self):
        return self._parts[..., 0]

    @property
    def imag(self):
        return self._parts[..., 1]

    @property
    def shape(self):
        return self._parts.shape[:-1]

    @property
    def ndim(self):
        return self._parts.ndim - 1

    @property
    def dtype(self):
        return np.dtype(np.complex64 if self._parts.dtype == np.float32 else np.complex128)

    @property
    def T(self):
        return self.transpose()

    def transpose(self, *axes):
        axes = axes[0] if len(axes) == 1 and isinstance(axes[0], (tuple, list)) else axes
        order = [to_axis(axis, self.ndim, "transpose") for axis in axes] or list(reversed(range(self.ndim)))
        return Spectrum(np.transpose(self._parts, [*order, self.ndim]))

    def _moved(self, axis):
        return Spectrum(np.moveaxis(self._parts, -2, axis))

    def conj(self):
        return Spectrum(self._parts * np.array([1, -1], self._parts.dtype))

    conjugate = conj

    def __getitem__(self, index):
        items = index if isinstance(index, tuple) else (index,)
        taken = sum(item.ndim if getattr(item, "dtype", None) == bool else 1 for item in items if item is not None and item is not Ellipsis)
        if taken > self.ndim:
            raise TraceError(f"{taken} subscripts of a spectrum of {self.ndim} axes", "one for each axis at most")
        if any(item is Ellipsis for item in items):
            items = (*items, slice(None))
        return Spectrum(self._parts[items])

    def __abs__(self):
        return np.sqrt(self._power())

    def _power(self):
        real, imag = self.real, self.imag
        return real * real + imag * imag

    def angle(self):
        return np.arctan2(self.imag, self.real)

    def __neg__(self):
        return Spectrum(-self._parts)

    def __mul__(self, other):
        if isinstance(other, Spectrum):
            real = self.real * other.real - self.imag * other.imag
            return Spectrum(np.stack([real, self.real * other.imag + self.imag * other.real], axis=-1))
        return Spectrum(self._parts * _beside(other))

    __rmul__ = __mul__

    def __truediv__(self, other):
        if isinstance(other, Spectrum):
            raise TraceError("a quotient by complex numbers", _INSTEAD)
        return Spectrum(self._parts / _beside(other))

    def __add__(self, other):
        return Spectrum(self._parts + _spectrum(other)._parts)

    def __sub__(self, other):
        return Spectrum(self._parts - _spectrum(other)._parts)

    def __pow__(self, exponent):
        raise TraceError("a power of complex numbers", "np.abs(x) ** 2 is their square's size")

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        made = _UFUNCS.get(ufunc.__name__)
        if method != "__call__" or kwargs or made is None:
            raise TraceError(f"np.{ufunc.__name__} of complex numbers", _INSTEAD)
        return made(*inputs)

    def __array_function__(self, func, types, args, kwargs):
        made = _FUNCTIONS.get(func.__name__)
        if kwargs or made is None:
            raise TraceError(f"np.{func.__name__} of complex numbers", _INSTEAD)
        return made(*args)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        raise _refusals.TraceAttributeError(f"attribute .{name} of complex numbers", _INSTEAD)

    def __array__(self, dtype=None, copy=None):
        raise TraceError("complex numbers as a traced value", _INSTEAD)


_INSTEAD = "np.abs, np.angle, .real and .imag are real numbers"


def _beside(other):
    """A real factor, with an axis for the two parts."""
    if isinstance(other, (bool, int, float)):
        return other
    if isinstance(other, complex) or getattr(other, "dtype", np.dtype(float)).kind == "c":
        raise TraceError("complex constants", _INSTEAD)
    return (other if isinstance(other, _trace.StandIn) else np.asarray(other))[..., None]


def _spectrum(value):
    if not isinstance(value, Spectrum):
        raise TraceError("complex numbers beside real ones", _INSTEAD)
    return value


def _divided(a, b):
    return _spectrum(a) / b


_UFUNCS = {
    "absolute": abs,
    "negative": lambda x: -x,
    "conjugate": lambda x: x.conj(),
    "multiply": lambda a, b: a * b if isinstance(a, Spectrum) else b * a,
    "divide": lambda a, b: _divided(a, b),
    "add": lambda a, b: _spectrum(a) + b,
    "subtract": lambda a, b: _spectrum(a) - b,
}
_FUNCTIONS = {
    "real": lambda x: x.real,
    "imag": lambda x: x.imag,
    "angle": lambda x: x.angle(),
    "transpose": lambda x, axes=None: x.transpose(*(axes or ())),
    "swapaxes": lambda x, i, j: x.transpose(*_swapped(x.ndim, i, j)),
    "shape": lambda x: x.shape,
    "ndim": lambda x: x.ndim,
}


def _swapped(ndim, i, j):
    order = list(range(ndim))
    i, j = to_axis(i, ndim, "np.swapaxes"), to_axis(j, ndim, "np.swapaxes")
    order[i], order[j] = order[j], order[i]
    return order
