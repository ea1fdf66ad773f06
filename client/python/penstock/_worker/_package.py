"""The package in a worker process: nothing is imported of it but what the process needs, until somebody asks for a name or for another module.

The whole of it takes longer than NumPy. A function that draws by penstock.rng() needs it; a dataset of the drop-in DataLoader mostly needs nothing of it.
"""

import os
import sys
import threading
import types

# Modules that import no others than these, and what stands below them.
_LIGHT = ("penstock._albumentations", "penstock._errors", "penstock._loading", "penstock._row", "penstock._structure", "penstock._worker")

# Who does what is none of a row's time (_trays.Progress.aside).
aside = None

_lock = threading.RLock()
_is_loading = False


class _Package(types.ModuleType):
    def __getattr__(self, name):
        # By such names its modules ask for one another, and the import system for what modules have.
        if name.startswith("_") and name not in ("__all__", "__version__"):
            raise AttributeError(f"module 'penstock' has no attribute {name!r}")
        _load(self)
        return getattr(self, name)

    def __dir__(self):
        _load(self)
        return dir(self)


class _Finder:
    """Has the whole package imported in front of any other module of it, as always: they are made to be imported in its order."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        if _is_loading or not name.startswith("penstock.") or ".".join(name.split(".")[:2]) in _LIGHT:
            return None
        _load(sys.modules["penstock"])
        module = sys.modules.get(name)
        if module is None:
            return None
        from importlib.machinery import ModuleSpec

        # The import system takes the module's own spec, where there is a module, and would execute it again.
        spec = ModuleSpec(name, _There(module))
        module.__spec__ = spec
        return spec


class _There:
    """The loader of a module that the package has imported meanwhile."""

    def __init__(self, module):
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec):
        return self._module

    def exec_module(self, module):
        module.__spec__ = self._spec


def install(package):
    """Makes the module that _start has put in the package's place one that becomes the whole of it."""
    from importlib.machinery import PathFinder

    (folder,) = package.__path__
    spec = PathFinder.find_spec("penstock", [os.path.dirname(folder)])
    package.__spec__, package.__loader__, package.__file__, package.__package__ = spec, spec.loader, spec.origin, "penstock"
    package.__class__ = _Package
    sys.meta_path.insert(0, _Finder)


def _load(package):
    global _is_loading
    with _lock:
        if type(package) is not _Package:
            return  # another thread was first
        if _is_loading:
            raise AttributeError("module 'penstock' is being imported")
        _is_loading = True
        try:
            execute = package.__loader__.exec_module
            execute(package) if aside is None else aside(lambda: execute(package))
            package.__class__ = types.ModuleType
            sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not _Finder]
        finally:
            _is_loading = False
