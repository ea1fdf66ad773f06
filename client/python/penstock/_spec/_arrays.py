"""Arrays of this process as tensors of a spec: from_tensors and from_tensor_slices.

Small ones are written into the spec. Larger ones go into a memory file, which the daemon maps; an array
that np.load has mapped from a .npy file is read from that file. Strings lie there as NumPy's type S.
"""

import collections.abc
import os
import weakref

import numpy as np

from penstock import _errors
from penstock._spec import _textproto

MAX_INLINE_BYTES = 16 << 10
# Of strings with their field's name, most of which are paths: a spec that holds them itself can be saved.
_MAX_INLINE_STRING_BYTES = 64 << 10
# Of strings of one length in a memory file, beyond four times their own.
_MAX_PADDED_BYTES = 1 << 30
_NUMBERS = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16".split()


class MemoryArray:
    """A copy of an array in a memory file, in the .npy format."""

    __slots__ = ("_fd", "__weakref__")

    def __init__(self, array):
        self._fd = os.memfd_create("penstock-array", os.MFD_CLOEXEC)
        # Not in a forked child, whose descriptor is another one of the same number: it lives as long.
        weakref.finalize(self, os.close, self._fd).atexit = False
        with open(self._fd, "wb", closefd=False) as file:
            np.lib.format.write_array(file, np.asarray(array, order="C"), allow_pickle=False)

    def spec_value(self):
        return f"/proc/{os.getpid()}/fd/{self._fd}"

    def load(self):
        return np.load(self.spec_value())

    # Nobody writes into it, so that a copy is itself; in a pickle its values travel, since a descriptor means nothing elsewhere.
    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return MemoryArray, (self.load(),)


def _of_list(values, what):
    """An array of nested lists: of objects, if they hold strings, since NumPy's types of them drop zeros at the end."""
    leaf = values
    while isinstance(leaf, (list, tuple)) and leaf:
        leaf = leaf[0]
    try:
        array = None if isinstance(leaf, (str, bytes)) else np.asarray(values)
    except ValueError as error:
        raise ValueError(
            f"{what} holds lists of different lengths, which no tensor has ({error}); pad them, or write them to a TFRecord file, whose "
            "features may have any length (penstock write OUT.tfrecord --jsonl FILE)"
        ) from None
    return np.array(values, object) if array is None or array.dtype.kind in "SU" else array


def _is_sequence(value):
    """A range, for one, or array.array."""
    try:
        return isinstance(value, collections.abc.Sequence) or memoryview(value) is not None
    except TypeError:
        return False


def as_array(value, what):
    """An array of numbers in this machine's byte order, or of strings."""
    array = value if isinstance(value, np.ndarray) else None
    if np.any(getattr(array, "mask", False)):
        raise TypeError(f"{what} is a masked array, and tensors have no masks: give array.filled(value), and array.mask as a tensor of its own")
    if array is None:
        if isinstance(value, (list, tuple)):
            array = _of_list(value, what)
        elif isinstance(value, (str, bytes)):
            array = np.empty((), object)
            array[()] = value
        elif hasattr(value, "toarray") or hasattr(value, "cpu"):
            raise TypeError(f"{what} is a {type(value).__name__}; give a NumPy array")
        elif hasattr(value, "__getitem__") and not hasattr(value, "__array__") and not _is_sequence(value):
            # NumPy would ask such a dataset for all that it has.
            raise TypeError(
                f"{what} is a {type(value).__module__}.{type(value).__qualname__}, which is neither an array nor a list; what its elements are made of "
                "is declared, and no Python runs for each (docs/migrating.md)"
            )
        else:
            array = np.asarray(value)
            # As tf.data takes Python's numbers, but for their width: int32 and float32 there.
    if not isinstance(array, np.memmap):
        # Of a matrix, whose rows have two axes, and of other classes the array.
        array = np.asarray(array)
    if array.dtype.kind == "T":
        # NumPy's strings of any length.
        array = _with_words(array, what)
    if array.dtype.kind not in "OSU" and array.dtype.name not in _NUMBERS:
        raise TypeError(f"{what} is of type {array.dtype.name}, which no tensor has")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _with_words(array, what):
    """An array of NumPy's StringDType as objects, which may have missing ones."""
    words = array.astype(object)
    for place, word in np.ndenumerate(words):
        if not isinstance(word, str):
            raise TypeError(f"{what} has a missing text{_at(place)}, {word!r}: fill it, with \"\" for one")
    return words


def _at(place):
    """Where in an array that is."""
    return f" at [{', '.join(map(str, place))}]" if place else ""


# What arrays of objects hold that tensors do not, and what to write.
_INSTEAD = {
    bool: "array.astype(bool) has the flags as a type of NumPy's",
    int: "array.astype(np.int64) has them as a type of NumPy's",
    float: "array.astype(np.float64) has them as a type of NumPy's",
    type(None): "a tensor has no missing values: give a number or a text in its place, or leave the element out",
    list: "lists that are not all as long make an array of objects; pad them, or write them to a TFRecord file",
    np.ndarray: "arrays that are not all as large make an array of objects; pad them, or write them to a TFRecord file",
}


def _refuse_objects(array, strings, what):
    """Says which element is no string, and what to do."""
    kinds = {}
    for place, item in zip(np.ndindex(array.shape), strings):
        if not isinstance(item, bytes):
            kinds.setdefault(type(item), (place, item))
    if not kinds:
        return
    # One that is missing among others is what is wrong there.
    kind = type(None) if type(None) in kinds else next(iter(kinds))
    place, item = kinds[kind]
    others = "" if len(kinds) > 1 or not any(isinstance(item, bytes) for item in strings) else " among strings"
    if isinstance(item, (int, np.integer)) and not -(1 << 63) <= item < 1 << 64:
        instead = "tensors hold integers of at most 64 bits"
    else:
        instead = next((text for base, text in _INSTEAD.items() if issubclass(kind, base)), "tensors hold numbers, flags and strings")
    shown = repr(item)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    raise TypeError(f"{what} is an array of objects with the {kind.__name__} {shown}{others}{_at(place)}; {instead}")


def _mapped_file(address):
    """The path of the file that is mapped there, which ends with " (deleted)" where it has that no more; None where none is."""
    with open("/proc/self/maps", "rb") as file:
        for line in file:
            fields = line.rstrip(b"\n").split(None, 5)
            first, last = (int(end, 16) for end in fields[0].split(b"-"))
            if first <= address < last:
                return fields[5] if len(fields) == 6 else None
    return None


def _file_of(array, what):
    """The .npy file that `array` is the whole of, or None."""
    if not isinstance(array, np.memmap) or not str(array.filename or "").endswith(".npy"):
        return None
    # What was written into a map of this mode is not in the file.
    if array.mode == "c":
        return None
    if (_mapped_file(array.ctypes.data) or b"").endswith(b" (deleted)") or not os.path.exists(array.filename):
        # The daemon would read what is there by now.
        raise _errors.FailedPreconditionError(
            f"{what} is mapped from {array.filename}, which has been deleted or replaced since: np.load maps what is there now, and np.array(array) copies what was"
        )
    whole = np.load(array.filename, mmap_mode="r")
    same = (whole.shape, whole.dtype, whole.offset) == (array.shape, array.dtype, array.offset)
    return os.path.abspath(array.filename) if same and array.flags.c_contiguous else None


def _strings_in_file(array, strings, num_bytes, what):
    """A memory file with the strings of an array, or None if the spec has to hold them."""
    if any(item.endswith(b"\0") for item in strings):
        if len(_textproto.write_fields([("string_value", strings)])) < 1 << 20:
            return None
        raise ValueError(f"{what} holds more strings than a spec may, some with zeros at the end; write them to a TFRecord file")
    longest = max(1, *map(len, strings))
    if longest * len(strings) > max(_MAX_PADDED_BYTES, 4 * num_bytes):
        raise ValueError(
            f"{what} holds {len(strings)} strings of up to {longest} bytes, which take as much room each; "
            "write them to a TFRecord file, or read files by map and io.read_file"
        )
    return MemoryArray(np.array(strings, f"S{longest}").reshape(array.shape))


def constant_strings(array):
    """The field of a spec's constant with the bytes objects of an array, or with the file that has them."""
    strings = array.ravel().tolist()
    num_bytes = sum(map(len, strings), 16 * len(strings))
    if num_bytes > _MAX_INLINE_STRING_BYTES:
        file = _strings_in_file(array, strings, num_bytes, "a constant")
        if file is not None:
            return "npy", file
    return "string_value", strings


def tensor_values(name, value, what):
    """A TensorValues message for an array, and the array."""
    array = as_array(value, what)
    name = None if name is None else ("name", name)
    head = [name] if name else []
    if array.dtype.kind in "OSU":
        strings = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
        _refuse_objects(array, strings, what)
        num_bytes = sum(map(len, strings), 16 * len(strings))
        file = _strings_in_file(array, strings, num_bytes, what) if num_bytes > _MAX_INLINE_STRING_BYTES else None
        if file is not None:
            return _textproto.Message(*head, ("dtype", "string"), ("npy", file)), array
        dtype = None if strings else "string"
        shape = list(array.shape) or None
        return _textproto.Message(*head, ("dtype", dtype), ("shape", shape), ("string_value", strings)), array
    path = _file_of(array, what)
    dtype = array.dtype.name
    if path is not None:
        return _textproto.Message(*head, ("dtype", dtype), ("npy", path)), array
    if array.nbytes > MAX_INLINE_BYTES or array.size == 0 or dtype == "bfloat16":
        return _textproto.Message(*head, ("dtype", dtype), ("npy", MemoryArray(array))), array
    field = {"i": "int_value", "b": "int_value", "u": "uint_value"}.get(array.dtype.kind, "value")
    values = [int(item) for item in array.ravel()] if field != "value" else [float(item) for item in array.ravel()]
    return _textproto.Message(*head, ("dtype", dtype), ("shape", list(array.shape) or None), (field, values)), array
