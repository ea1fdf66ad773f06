"""Which indices a torch sampler gives, and how an epoch of it is begun again at any batch.

Samplers run in the trainer, as torch's do, and draw from the same generators in the same order. An epoch is known by the states of the
generators that its sampler draws from, as they were before it; going on at batch k draws the k batches in front of it again, and a digest
says whether they are the same.
"""

import contextlib
import hashlib
import itertools
import json
import pickle
import random

import numpy as np
import torch

from penstock import _errors
from penstock._loading._worker import COUNT, HEAD, KIND, LIST, LONE, NUMBER, PICKLED, TUPLE


class _TorchGenerator:
    """A generator whose state get() tells, to be compared, written() as bytes, and set() from them."""

    def __init__(self, generator):
        self._generator = generator

    def get(self):
        return self._generator.get_state().numpy().tobytes()

    def written(self, state):
        return state

    def set(self, state):
        self._generator.set_state(torch.frombuffer(bytearray(state), dtype=torch.uint8))


class _PythonRandom:
    def __init__(self, source):
        self._source = source

    def get(self):
        return self._source.getstate()

    def written(self, state):
        return json.dumps(state).encode()

    def set(self, state):
        version, numbers, gauss = json.loads(state)
        self._source.setstate((version, tuple(numbers), gauss))


class _NumpyRandom:
    """Of np.random, a RandomState or a Generator."""

    def __init__(self, get, set):
        self._get = get
        self._set = set

    def get(self):
        def compared(value):
            if isinstance(value, dict):
                return {key: compared(inner) for key, inner in value.items()}
            return value.tolist() if isinstance(value, np.ndarray) else value

        return compared(self._get())

    def written(self, state):
        return json.dumps(state).encode()

    def set(self, state):
        def restored(value):
            if isinstance(value, dict):
                return {key: restored(inner) for key, inner in value.items()}
            return np.array(value, np.uint64 if any(number >> 32 for number in value) else np.uint32) if isinstance(value, list) else value

        self._set(restored(json.loads(state)))


def _generator(value):
    if isinstance(value, torch.Generator):
        return _TorchGenerator(value)
    if isinstance(value, random.Random):
        return _PythonRandom(value)
    if isinstance(value, np.random.RandomState):
        return _NumpyRandom(lambda: value.get_state(legacy=False), value.set_state)
    if isinstance(value, np.random.Generator):
        bits = value.bit_generator
        return _NumpyRandom(lambda: bits.state, lambda state: setattr(bits, "state", state))
    return None


# Everybody's, which the trainer draws from too.
_GLOBAL = {
    "torch": _TorchGenerator(torch.default_generator),
    "random": _PythonRandom(random),
    "numpy": _NumpyRandom(lambda: np.random.get_state(legacy=False), np.random.set_state),
}


class Generators:
    """The generators that a loader's samplers may draw from: their own, and the global ones of torch, Python and NumPy."""

    def __init__(self, loader):
        self._own = {}
        seen = {id(torch.default_generator)}
        self._find("generator", loader.generator, seen)
        for name in ("batch_sampler", "sampler"):
            self._find(name, getattr(loader, name), seen)

    def _find(self, name, value, seen):
        if value is None or id(value) in seen:
            return
        seen.add(id(value))
        found = _generator(value)
        if found is not None:
            self._own[name] = found
        elif isinstance(value, torch.utils.data.Sampler):
            for key, inner in vars(value).items():
                self._find(f"{name}.{key}", inner, seen)

    def get(self):
        """The states by name."""
        return {name: generator.get() for name, generator in {**_GLOBAL, **self._own}.items()}

    def own(self):
        """The states of those that are the samplers' or the loader's own, as bytes by name."""
        return {name: generator.written(generator.get()) for name, generator in self._own.items()}

    def set_own(self, states):
        """
        Raises:
          FailedPreconditionError: there is none of that name.
        """
        for name, state in states.items():
            self._found(name, self._own).set(state)

    def written(self, states):
        """They as bytes, by name."""
        return {name: (_GLOBAL.get(name) or self._own[name]).written(state) for name, state in states.items()}

    @contextlib.contextmanager
    def at(self, states):
        """With those states; afterwards the global ones are where they were, the samplers' own where they came to."""
        before = {name: _GLOBAL[name].get() for name in states if name in _GLOBAL}
        for name, state in states.items():
            self._found(name, {**self._own, **_GLOBAL}).set(state)
        try:
            yield
        finally:
            for name, state in before.items():
                _GLOBAL[name].set(_GLOBAL[name].written(state))


    @staticmethod
    def _found(name, generators):
        if name not in generators:
            raise _errors.FailedPreconditionError(f"the state is that of a loader whose {name} draws, and this one has none there")
        return generators[name]


# Whoever draws while an epoch is under way, draws when it begins.
_LOOKS = 4


class Indices:
    """One epoch of a sampler."""

    def __init__(self, iterator, generators):
        self._iterator = iterator
        self._generators = generators
        self._before = generators.get()
        # A loader's own generator has given the epoch's seed, too.
        self._drawn_from = {name for name in self._before if name == "generator"}
        self._has_drawn = False
        self._looks_left = _LOOKS
        self._number = 0

    def states(self):
        """The states before the epoch of the generators that the sampler draws from, or of all, as long as it has drawn nothing: bytes by name."""
        return self._generators.written({name: self._before[name] for name in (self._drawn_from if self._has_drawn else self._before)})

    def draw(self, most):
        """The next batches' indices as the sampler gives them: a list of at most `most`, empty behind the last."""
        self._has_drawn = True
        if not self._looks_left:
            return list(itertools.islice(self._iterator, most))
        self._looks_left -= 1
        before = self._generators.get()
        drawn = list(itertools.islice(self._iterator, most))
        after = self._generators.get()
        self._drawn_from |= {name for name, state in before.items() if after[name] != state}
        return drawn

    def draw_until(self, batches, most_indices):
        """The next `batches`, or fewer that have `most_indices` together."""
        drawn = []
        count = 0
        while len(drawn) < batches and count < most_indices:
            more = self.draw(min(64, batches - len(drawn)))
            if not more:
                break
            drawn += more
            count += sum(len(item) if hasattr(item, "__len__") else 1 for item in more)
        return drawn

    def rows(self, drawn, base_seed, turn):
        """They as rows for the workers: int64, (len(drawn), HEAD + indices of the largest)."""
        rows = pack(drawn)
        rows[:, NUMBER] = np.arange(self._number, self._number + len(rows))
        self._number += len(rows)
        rows[:, 3:HEAD] = base_seed, turn
        return rows

    def draw_all(self, states):
        """Leaves the samplers' own generators as behind an epoch that began with these states, and the global ones as they are."""
        with self._generators.at(states):
            while self.draw_until(1 << 16, 1 << 20):
                pass

    @contextlib.contextmanager
    def at(self, states):
        """As the epoch that began with these states."""
        with self._generators.at(states):
            self._before = self._generators.get()
            self._drawn_from = set(states)
            yield


def pack(drawn):
    """Rows with KIND, COUNT and indices; the other columns are 0."""
    kinds = set(map(type, drawn))
    if kinds == {int}:
        return _filled(LONE, np.ones(len(drawn), np.int64), np.array(drawn, np.int64), drawn)
    if kinds == {list} or kinds == {tuple}:
        flat = list(itertools.chain.from_iterable(drawn))
        if set(map(type, flat)) <= {int}:
            counts = np.fromiter(map(len, drawn), np.int64, len(drawn))
            return _filled(LIST if kinds == {list} else TUPLE, counts, flat, drawn)
    return _pickled(drawn)


def _filled(kind, counts, flat, drawn):
    try:
        flat = np.array(flat, np.int64)
    except OverflowError:
        return _pickled(drawn)
    rows = np.zeros((len(counts), HEAD + int(counts.max())), np.int64)
    rows[:, KIND] = kind
    rows[:, COUNT] = counts
    rows[:, HEAD:][np.arange(rows.shape[1] - HEAD) < counts[:, None]] = flat
    return rows


def _pickled(drawn):
    """Of indices that are no integers of Python's: texts, arrays, tensors, and mixtures."""
    texts = [pickle.dumps(item, 5) for item in drawn]
    rows = np.zeros((len(texts), HEAD + max(-(-len(text) // 8) for text in texts)), np.int64)
    rows[:, KIND] = PICKLED
    for row, text in zip(rows, texts):
        row[COUNT] = len(text)
        row[HEAD:].view(np.uint8)[: len(text)] = np.frombuffer(text, np.uint8)
    return rows


class Digest:
    """Of the indices of the batches that were given."""

    def __init__(self):
        self._hash = hashlib.blake2b(digest_size=8)

    def add(self, rows):
        for row in rows:
            columns = HEAD + (-(-int(row[COUNT]) // 8) if row[KIND] == PICKLED else int(row[COUNT]))
            # Lists and tuples of the same indices are the same to whoever goes on.
            self._hash.update(row[COUNT : COUNT + 1].tobytes() + row[HEAD:columns].tobytes())

    def hex(self):
        return self._hash.hexdigest()
