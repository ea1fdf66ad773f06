"""The chain of stages that a dataset is, below the methods that lengthen it."""

from penstock import _control, _errors, _structure
from penstock._dataset import _cardinality
from penstock._dataset._cardinality import UNKNOWN
from penstock._dataset._described import types_of, validated
from penstock._dataset._types import Types
from penstock._options import Options
from penstock._spec._lines import user_line
from penstock._spec._stage import Spec, Stage, Trait, is_
from penstock._tracing import _program
from penstock._tracing._refusals import TraceError, listed


class _Ask:
    """In the place of a structure: it is asked of the daemon when it is needed."""

    def __reduce__(self):
        return "ASK"


ASK = _Ask()


class Chain:
    """Stages, and what is known of their elements. All chains are Datasets, which are above this module: their methods make chains of chains."""

    # Dataset, which says so itself: what of_stages() makes.
    whole = None

    def __init__(self, stages, structure, cardinality=UNKNOWN, options=None, window=None):
        self._stages = tuple(stages)
        # A function that makes a pipeline's stages of those of a window's elements: for a dataset inside of window.
        self._window = window
        self._known_structure = structure
        self._count = cardinality
        # Elements of an unbatch behind it.
        self._rows = 0 if cardinality == 0 else _cardinality.of_values(cardinality)
        self._options = options or Options()
        self._described = None
        self._skipped = _control.Skipped(0, [])
        self._told_of_skipped = False
        # Of the pass that has begun last: a weak reference to its iterator, and what that has told at its end.
        self._begun = None
        self._stats = {}
        self._length = None  # what the daemon has counted
        # Of from_tensor_slices: the structure and the arrays of what it was given, in order.
        self._given = None
        # Of a concatenation inside of flat_map: the datasets of one element each that it is of.
        self._parts = None
        # Of from_python: the dataset of the indices, behind whose stages others fetch elements by them.
        self._indices = None
        # Of a source that shuffles by parts of its files: what makes the dataset anew, shuffled, as Order.global_shuffle calls it.
        self._shuffled = None

    def __getstate__(self):
        # A pass is this process' own.
        return {name: value for name, value in self.__dict__.items() if name != "_begun"}

    def __setstate__(self, state):
        self.__dict__.update(state, _begun=None)

    def _then(self, op, fields, structure=..., cardinality=UNKNOWN, name=None, rows=None):
        """This dataset with one more stage.

        Args:
          fields: pairs of the message's field and its value; None leaves it out.
          structure: of the elements behind it; by default as before.
          rows: how many rows all elements have together, if that is known.
        """
        if self._indices is not None and is_(op, Trait.BY_PLACE):
            return self._fetched_by(self._indices._then(op, fields, cardinality=cardinality, name=name))
        structure = self._known_structure if structure is ... else structure
        stages = (*self._stages, Stage(op, fields, name))
        dataset = self._like(stages, structure, cardinality)
        if rows is not None:
            dataset._rows = rows
        return dataset

    def _like(self, stages, structure, cardinality=UNKNOWN):
        """Those stages, where this dataset's are."""
        return of_stages(stages, structure, cardinality, self._options, self._window)

    def _fetched_by(self, indices):
        """The elements of other indices than this dataset's."""
        work = self._stages[len(self._indices._stages) :]
        dataset = of_stages((*indices._stages, *work), self._known_structure, indices._count, indices._options, indices._window)
        dataset._indices = indices
        return dataset

    def _whole(self, stages):
        """The stages of a pipeline."""
        return stages if self._window is None else self._window(stages)

    @property
    def _structure(self):
        if self._known_structure is ASK:
            self._known_structure = _structure.from_json(self._describe()["structure"])
        return self._known_structure

    def _describe(self):
        if self._described is None:
            self._described = validated(Spec(self._whole(self._stages), None, self._options))[0]
        return self._described

    def _type_of(self, trace, node):
        """The TensorSpec of a value inside a function given to map."""
        try:
            (spec,), _ = types_of(self._whole((*self._stages, *_program.type_stages(trace, node, user_line()))))
        except _errors.DataLossError:
            # The files are wrong, not the function.
            raise
        except _errors.InvalidArgumentError as error:
            raise TraceError(
                f"the type of this value is not known while tracing ({error})", "use functions that need none"
            ) from None
        return spec

    def _types_of(self, trace):
        """The types of the values of a function that is traced over the elements."""
        return Types(trace)


def of_stages(stages, structure, cardinality=UNKNOWN, options=None, window=None):
    """A Dataset."""
    return Chain.whole(stages, structure, cardinality, options, window)


def merged_options(datasets):
    merged = Options()
    for dataset in datasets:
        merged = merged.merge(dataset._options)
    return merged


def shown(structure):
    if structure is None:
        return "a tensor"
    if isinstance(structure, tuple):
        return f"({listed(map(shown, structure))}{',' if len(structure) == 1 else ''})"
    return "{" + listed(key if inner is None else f"{key}: {shown(inner)}" for key, inner in structure.items()) + "}"
