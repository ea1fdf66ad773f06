"""The draws of albumentations, in a worker process: its transforms have generators of their own, which no global seed reaches.

From version 1.4.15 on each Compose, and each transform that is called alone, holds a numpy.random.Generator and a random.Random. They are made
when the object is, or copied with it, so that what they draw would depend on the process that has made it and on the elements that it has had. Here each outermost call draws by
the element and by how many such calls the element has had before.

The worker (_worker/_start.py) loads this file alone. Nothing costs anything before albumentations is imported.
"""

import sys

_MODULES = ("albumentations.core.composition", "albumentations.core.transforms_interface")


def follow(row):
    """Has albumentations draw by the element that `row` (the module _row) says, from its import on."""
    draws = _Draws(row)
    for name in _MODULES:
        module = sys.modules.get(name)
        if module is None:
            sys.meta_path.insert(0, _AfterImport(name, draws.follow))
        else:
            draws.follow(module)


class _AfterImport:
    """A finder that finds nothing itself, and calls `then` with the module when it has been imported."""

    def __init__(self, name, then):
        self.name = name
        self.then = then

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        import importlib.util

        spec = importlib.util.find_spec(name)
        execute = getattr(getattr(spec, "loader", None), "exec_module", None)
        if execute is not None:

            def execute_and_follow(module):
                execute(module)
                self.then(module)

            spec.loader.exec_module = execute_and_follow
        return spec


class _Draws:
    def __init__(self, row):
        self.row = row
        self.generators = None
        self.is_inside = False

    def follow(self, module):
        """Has the classes of a module that are called, and that take generators, seeded in front of each call."""
        for found in list(vars(module).values()):
            if isinstance(found, type) and found.__module__ == module.__name__ and hasattr(found, "set_random_state") and "__call__" in vars(found):
                found.__call__ = self._seeded(found.__call__)

    def _seeded(self, call):
        import functools

        @functools.wraps(call)
        def seeded(transform, *args, **options):
            # What a Compose calls draws from the generators of that.
            if self.is_inside or self.row.path is None:
                return call(transform, *args, **options)
            self.is_inside = True
            try:
                self._seed(transform)
                return call(transform, *args, **options)
            finally:
                self.is_inside = False

        return seeded

    def _seed(self, transform):
        if self.generators is None:
            import random

            import numpy.random

            bits = numpy.random.Philox(0)
            self.generators = numpy.random.Generator(bits), random.Random()
            self.seed_numpy = self.row.philox_seed(bits, 2)
        numpy_generator, python_random = self.generators
        if transform.random_generator is not numpy_generator or transform.py_random is not python_random:
            transform.set_random_state(numpy_generator, python_random)
        key = self.row.next_key()
        seed = getattr(transform, "seed", None)
        if isinstance(seed, int):
            key = self.row.mixed(key, seed)
        self.seed_numpy(key)
        python_random.seed(key)
