"""The draws of the global random generators, which belong to each element."""

import ctypes
import sys

import numpy as np

from penstock import _row

# Of fewer rows NumPy's calls cost more than Python's numbers.
_FEW_ROWS = 8


class ImportAside:
    """An importer of numpy.random, which NumPy imports when it is first used: that takes 30 ms, and is none of the row's time in which it happens.

    Args:
      aside: calls a function whose time is none of the row's.
    """

    def __init__(self, aside):
        self.aside = aside

    def find_spec(self, name, path=None, target=None):
        if name != "numpy.random":
            return None
        from importlib.machinery import PathFinder

        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None:
            execute = spec.loader.exec_module
            spec.loader.exec_module = lambda module: self.aside(lambda: execute(module))
        return spec


class Seeds:
    """Gives the global generators of random, NumPy and torch each element's own draws: those that the function uses, from then on.

    Whether it uses one is seen behind each sheet by the generator's state: then the sheet is done again, with its rows seeded.
    """

    def __init__(self, key, wanted):
        self.key = _row.spread(key)
        self.generators = dict(GENERATORS) if wanted else {}
        self.used = []
        self.looks = {}
        self.states = {}

    def begin(self):
        """In front of a sheet."""
        if len(self.looks) < len(self.generators):
            for name, kind in self.generators.items():
                if name in sys.modules and name not in self.looks:
                    self.looks[name] = kind.look()
        self.states = {name: state() for name, state in self.looks.items()}

    def found(self):
        """Whether the sheet behind begin() has used one that was not seeded."""
        found = False
        for name, kind in list(self.generators.items()):
            if name not in sys.modules:
                continue
            # One that the function has imported is not known from before.
            if name not in self.states or self.looks[name]() != self.states[name]:
                del self.generators[name]
                self.looks.pop(name, None)
                self.used.append(kind().seed)
                found = True
        return found

    def keys(self, paths):
        """The keys of a sheet's rows, by which those in `used` are seeded, as a list; `paths` is an array of uint64."""
        if len(paths) < _FEW_ROWS:
            return [_row.mixed_in(self.key, path) for path in paths.tolist()]
        return _mixed_in_all(self.key, paths).tolist()


def _mixed_in_all(state, paths):
    """_row.mixed_in() of many paths."""
    mixed = paths + np.uint64(state)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))


# Of the Mersenne Twister, whose state and position both random and NumPy keep.
_TWISTER_WORDS = 624


class _Memory:
    """The bytes of a generator's state, where they lie: a look takes 0.6 µs, where asking takes 24 (random) and 97 (NumPy).

    Args:
      place: their address.
      words: how many numbers of 32 bits they are.
    """

    def __init__(self, place, words):
        self.numbers = (ctypes.c_uint32 * words).from_address(place)
        self.bytes = memoryview(self.numbers).cast("B")

    def holds(self, numbers):
        return list(self.numbers) == list(numbers)


class EveryGenerator:
    """Seeds all global generators of modules that are there."""

    def __init__(self):
        self.generators = {}
        self.modules = 0

    def are_new(self):
        """Whether there is one that has not been seeded."""
        if len(sys.modules) == self.modules:
            return False
        self.modules = len(sys.modules)
        return any(name in sys.modules and name not in self.generators for name in GENERATORS)

    def seed(self, key):
        for name, kind in GENERATORS.items():
            if name in sys.modules and name not in self.generators:
                self.generators[name] = kind()
        for generator in self.generators.values():
            generator.seed(key)


class _PythonRandom:
    def __init__(self):
        import _random
        import random

        generator = random._inst
        seed_words = _random.Random.seed

        def seed(key):
            # random.seed(key), without its look at the key's type.
            seed_words(generator, key)
            generator.gauss_next = None

        self.seed = seed

    @staticmethod
    def look():
        """A function without arguments: its value is another one behind each draw."""
        random = sys.modules["random"]
        generator, kind = random._inst, type(random._inst).__base__
        # As CPython has it: an object's head, the position, the words. Elsewhere it is asked for.
        size = object.__basicsize__ + 4 * (_TWISTER_WORDS + 1)
        if kind.__module__ != "_random" or kind.__basicsize__ < size or sys.implementation.name != "cpython":
            return random.getstate
        memory = _Memory(id(generator) + object.__basicsize__, _TWISTER_WORDS + 1)
        words = random.getstate()[1]
        if not memory.holds([words[-1], *words[:-1]]):
            return random.getstate
        return lambda: (bytes(memory.bytes), generator.gauss_next)


class _NumpyRandom:
    def __init__(self):
        import numpy.random as random

        if not hasattr(random, "set_bit_generator"):
            # Before NumPy 1.24: slower, and as good.
            self.seed = lambda key: random.seed([key & 0xFFFFFFFF, key >> 32])
            return
        bits = random.Philox(0)
        state = _row.plain_state(bits)
        words, install = state["state"]["key"], random.set_bit_generator

        def seed(key):
            words[0] = key
            bits.state = state
            # The generator keeps a second normal number back, which goes with that: half of what set_state() takes.
            install(bits)

        self.seed = seed

    @staticmethod
    def look():
        return _NumpyLook().state


class _NumpyLook:
    """The state of NumPy's global generator, seen at its place in memory.

    A normal number that the generator keeps back does not lie there. Where it keeps one, it is asked for the whole state.
    """

    def __init__(self):
        self.random = sys.modules["numpy.random"]
        self.bits = self.memory = None
        self.known = None  # bytes beside which no number is kept back

    def state(self):
        # A program may put another one in its place.
        bits = getattr(getattr(self.random.mtrand, "_rand", None), "_bit_generator", None)
        if bits is not self.bits:
            self.bits, self.memory, self.known = bits, self._memory(bits), None
        if self.memory is None:
            return bits, self._whole()
        seen = bytes(self.memory.bytes)
        if seen == self.known:
            return bits, seen
        whole = self._whole()
        if whole[2]:
            return bits, whole
        self.known = seen
        return bits, seen

    @staticmethod
    def _memory(bits):
        if type(bits).__name__ != "MT19937":
            return None
        state = bits.state["state"]
        memory = _Memory(bits.ctypes.state_address, _TWISTER_WORDS + 1)
        return memory if memory.holds([*state["key"].tolist(), state["pos"]]) else None

    def _whole(self):
        state = self.random.get_state(legacy=False)
        inner = state["state"]
        numbers = {name: value.tobytes() if hasattr(value, "tobytes") else value for name, value in inner.items()}
        return state["bit_generator"], numbers, state.get("has_gauss"), state.get("gauss"), state.get("buffer_pos")


class _TorchRandom:
    def __init__(self):
        self.seed = sys.modules["torch"].random.default_generator.manual_seed

    @staticmethod
    def look():
        torch = sys.modules["torch"]
        return lambda: torch.random.default_generator.get_state().numpy().tobytes() if hasattr(torch, "random") else b""


GENERATORS = {"random": _PythonRandom, "numpy.random": _NumpyRandom, "torch": _TorchRandom}
