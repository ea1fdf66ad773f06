"""np.unpackbits and np.packbits."""

import numpy as np

from penstock._numpy._axes import flat, sizes_of, to_axis, to_integer
from penstock._numpy._shapes import moveaxis, pad, reshape
from penstock._tracing._language import call
from penstock._tracing._refusals import TraceError
from penstock._tracing._trace import StandIn


def _bits_last(a, axis, bitorder, shown):
    """The array with the axis of the bits behind the others, and where that axis was; without one all of it is one axis."""
    if bitorder not in ("big", "little"):
        raise TraceError(f"{shown} with bitorder={bitorder!r}", 'it is "big" or "little"')
    a, axis = (flat(a), 0) if axis is None else (a, to_axis(axis, a.ndim, shown))
    return (a if axis == a.ndim - 1 else moveaxis(a, axis, -1)), axis


def _bytes_turned(bits):
    """Bits whose number is a multiple of eight, those of each byte from the last to the first."""
    *others, size = bits.shape if bits.shape.count(None) < 2 else sizes_of(bits)
    is_last_known = any(other is None for other in others) or size is not None
    of_bytes = reshape(bits, (*others, size // 8 if is_last_known else -1, 8))
    return reshape(of_bytes[..., ::-1], (*others, size if is_last_known else -1))


def unpackbits(a, axis=None, count=None, bitorder="big"):
    a, axis = _bits_last(a, axis, bitorder, "np.unpackbits")
    bits = call("unpack_bits", (a,), {}, "np.unpackbits")
    if bitorder == "little":
        bits = _bytes_turned(bits)
    if count is not None:
        count, size = to_integer(count, "np.unpackbits of the count"), sizes_of(bits)[-1]
        missing = np.maximum(count - size, 0)
        if count > 0 and (isinstance(missing, StandIn) or missing):
            bits = pad(bits, [(0, 0)] * (bits.ndim - 1) + [(0, missing)])
        bits = bits[..., :count]
    return bits if axis == bits.ndim - 1 else moveaxis(bits, -1, axis)


def packbits(a, axis=None, bitorder="big"):
    a, axis = _bits_last(a, axis, bitorder, "np.packbits")
    a = a if a.dtype in (bool, np.uint8) else a != 0
    if bitorder == "little":
        missing = -sizes_of(a)[-1] % 8
        a = a if isinstance(missing, int) and not missing else pad(a, [(0, 0)] * (a.ndim - 1) + [(0, missing)])
        a = _bytes_turned(a)
    packed = call("pack_bits", (a,), {}, "np.packbits")
    return packed if axis == packed.ndim - 1 else moveaxis(packed, -1, axis)
