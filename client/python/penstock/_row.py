"""Which element a Python function is called for, in a worker process, and the draws that belong to it.

The process (_worker) sets `key`, of the stage, and `path`, of each element (base/row_identity.h), before it calls the function. In
any other process there is no element.
"""

MASK = (1 << 64) - 1
STEP = 0x9E3779B97F4A7C15

key = None
path = None
is_fresh = True  # nothing has been drawn for it
_has_drawn = False  # rng()
_keys = 0  # that next_key() has given for it
_generator = None
_seed = None
# A function of a number of bytes: memory of the worker's output at the place where the row's only output will lie, an array of uint8. What is returned as a
# view of its beginning is not copied. It gives the same bytes again when it is asked for more.
room = None


def mixed(key, path):
    """The 64 bits that an element's draws are keyed by: MixPath of base/row_identity.h."""
    return mixed_in(spread(key), path)


def spread(key):
    """What mixed() does first, of the key alone: a step of splitmix64 (Steele, Lea and Flood 2014)."""
    state = (key + STEP) & MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


def mixed_in(state, path):
    """And the rest of it."""
    state = (state + path) & MASK
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & MASK
    return state ^ (state >> 31)


def plain_state(bits):
    """The state of a Philox, of Python's numbers: it is set in half the time that NumPy's take."""
    state = bits.state
    state["state"] = {name: value.tolist() for name, value in state["state"].items()}
    return {**state, "buffer": state["buffer"].tolist()}


def philox_seed(bits, stream):
    """A function that sets a numpy.random.Philox to the beginning of a key's stream: a tenth of what a new one costs."""
    state = plain_state(bits)
    words = state["state"]["key"]
    words[1] = stream

    def seed(key):
        words[0] = key
        bits.state = state

    return seed


class At:
    """An element that a generator yields with the position behind it, at which it can go on (Dataset.from_generator).

        def lines(path, position=None):
            with open(path, "rb") as file:
                file.seek(int.from_bytes(position or b"", "little"))
                while line := file.readline():
                    yield penstock.At(line, file.tell().to_bytes(8, "little"))

    The function has a parameter `position`: None at the beginning, else the bytes that stood beside an element; it goes on with the next one. Positions may
    stand beside some elements alone.

    Args:
      element: what would be yielded without it.
      position: bytes, at most 64, which mean something to the generator alone.

    Raises:
      TypeError: the position is no bytes.
      ValueError: it is longer.
    """

    __slots__ = ("element", "position")

    def __init__(self, element, position):
        if not isinstance(position, bytes):
            raise TypeError(f"a position is bytes, not a {type(position).__name__}")
        if len(position) > 64:
            raise ValueError(f"a position has at most 64 bytes, not {len(position)}")
        self.element = element
        self.position = position


class BadData(Exception):
    """The data of an element is bad, as the text says, with its address: no mistake of the function that found it, whose lines tell nothing."""


class Texts:
    """Strings that a function returns as one array, without a Python object for each: their lengths, and their bytes one after the other.

    Attributes:
      shape: of the array.
      lengths: bytes of each string, an array of uint32.
      pieces: buffers; their bytes are those of all strings, in order.
    """

    __slots__ = ("lengths", "pieces", "shape")

    def __init__(self, lengths, pieces, shape=None):
        self.lengths = lengths
        self.pieces = pieces
        self.shape = (len(lengths),) if shape is None else shape

    @property
    def nbytes(self):
        return self.lengths.nbytes + int(self.lengths.sum(dtype="int64"))

    def copy(self):
        """The same, which whoever has made these pieces may not change any more."""
        pieces = self.pieces
        if not set(map(type, pieces)) <= {bytes}:
            pieces = [piece if type(piece) is bytes else bytes(piece) for piece in pieces]
        return Texts(self.lengths, pieces, self.shape)


def rng():
    """The numpy.random.Generator of the element that a function given to `Dataset.map(…, python=True)` is called for.

    It draws the same for an element whatever the number of workers, behind a resume and after a crash; other elements, epochs and seeds have
    other draws. It is to be used during the call alone.

    Raises:
      RuntimeError: no such function is being called in this process.
    """
    global _has_drawn, _generator, _seed
    if path is None:
        raise RuntimeError("penstock.rng() belongs to an element: it is for functions given to Dataset.map(…, python=True), as they are called")
    if _generator is None:
        import numpy.random

        bits = numpy.random.Philox(0)
        _seed = philox_seed(bits, 1)
        _generator = numpy.random.Generator(bits)
    if is_fresh:
        _begin()
    if not _has_drawn:
        _has_drawn = True
        _seed(mixed(key, path))
    return _generator


def next_key():
    """64 bits for whatever else draws for the element: other ones at each call, which another worker would get, too."""
    global _keys
    if is_fresh:
        _begin()
    _keys += 1
    return mixed(mixed(key, path), _keys)


def _begin():
    global is_fresh, _has_drawn, _keys
    is_fresh = False
    _has_drawn = False
    _keys = 0
