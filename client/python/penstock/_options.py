"""tf.data.Options and penstock.TensorSpec."""

from typing import Any

import numpy as np

from penstock._dtypes import as_dtype


class Options:
    """Goes wherever tf.data's Options go, and takes any attribute. These have an effect:

    * `options.threading.private_threadpool_size = 4`: the number of worker threads.
    * `options.ring.slot_bytes = N`, beyond tf.data: how many bytes the tensors of variable size of one batch may take together.
    * `options.ring.slots = N`, beyond tf.data: how many batches the ring holds, 2 to 64; more give helpers (docs/howto/helpers.md) more time.
    * `options.memory.max_work_bytes = N`, beyond tf.data: how many bytes the pipeline may take for what it computes and keeps, beside its ring.

    No other has: order never depends on the machine, and there is nothing to tune.
    """

    def __init__(self) -> None:
        self.__dict__["_values"] = {}

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return self._values.setdefault(name, Options())

    def __setattr__(self, name, value):
        self._values[name] = value

    @property
    def workers(self):
        """The number of worker threads, or None for the daemon's default."""
        return self._number("threading", "private_threadpool_size") or None

    @property
    def slot_bytes(self):
        """How many bytes the tensors of variable size of one batch may take. None: the daemon's default; the ring grows beyond it."""
        return self._number("ring", "slot_bytes") or None

    @property
    def slots(self):
        """How many batches the ring holds, or None for the daemon's default."""
        return self._number("ring", "slots") or None

    @property
    def max_work_bytes(self):
        """How many bytes the pipeline may take for what it computes and keeps, or None for the daemon's default."""
        return self._number("memory", "max_work_bytes") or None

    def _number(self, group, name):
        inner = self._values.get(group)
        value = inner._values.get(name) if isinstance(inner, Options) else None
        if value is None:
            return None
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 0:
            raise ValueError(f"options.{group}.{name} is an integer from 0, the default, on: {value!r}")
        return int(value)

    def merge(self, other):
        """These with the other's over them."""
        merged = Options()
        for values in (self._values, other._values):
            for name, value in values.items():
                before = merged._values.get(name)
                if isinstance(value, Options):
                    # A copy, so that nobody's later change is everyone's.
                    value = (before if isinstance(before, Options) else Options()).merge(value)
                merged._values[name] = value
        return merged

    def __repr__(self):
        return f"Options({', '.join(f'{name}={value!r}' for name, value in self._values.items())})"


class TensorSpec:
    """The type of one tensor of an element.

    Attributes:
      shape: a tuple of the axes' sizes, None where only the data tells.
      dtype: a NumPy dtype, penstock.string, or "bfloat16".
      name: its path in the element.
      kind: "dense", "string", "ragged" or "sparse".
      row_splits_dtype: of a ragged one, np.int64 or np.int32; else None.
    """

    __slots__ = ("shape", "dtype", "name", "kind", "row_splits_dtype")

    def __init__(self, shape: Any, dtype: Any, name: Any = None, kind: Any = "dense", row_splits_dtype: Any = None) -> None:
        self.shape = tuple(shape)
        # Not one of NumPy's.
        self.dtype = "bfloat16" if getattr(dtype, "name", dtype) == "bfloat16" else as_dtype(dtype)
        self.name = name
        self.kind = kind
        self.row_splits_dtype = row_splits_dtype

    def __eq__(self, other):
        if not isinstance(other, TensorSpec):
            return NotImplemented
        return (self.shape, self.dtype) == (other.shape, other.dtype)

    def __hash__(self):
        return hash((self.shape, str(self.dtype)))

    def __repr__(self):
        return f"TensorSpec(shape={self.shape}, dtype={getattr(self.dtype, 'name', self.dtype)}, name={self.name!r})"
