"""penstock.Dataset: tf.data's names over the native engine.

A Dataset is a chain of stages and never changes; its methods give longer ones. Nothing runs before
an iteration. Its methods stand by subject in _sources, _order, _batching, _work and _keeping. To add an op: a method there that
returns self._then(op, fields, …), with the fields of its message in proto/penstock/v1/ops.proto.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Optional, Union

import numpy as np

from penstock import _cardinality, _control, _daemon, _dtypes, _errors, _program, _structure, _trace
from penstock._arguments import integer
from penstock._batching import Batching
from penstock._cardinality import INFINITE, UNKNOWN
from penstock._iterator import DatasetIterator, NumpyIterator
from penstock._keeping import Keeping
from penstock._options import Options, TensorSpec
from penstock._order import Order
from penstock._sources import Sources
from penstock._stage import Spec, Stage, user_line
from penstock._work import Work


# Stages behind which only the elements tell how many there are.
_BY_VALUE = {
    "bucket_by_sequence_length", "choose_from_datasets", "filter", "flat_map", "from_generator", "group_by_window", "ignore_errors", "interleave", "rejection_resample",
    "take_while", "unbatch", "unique",
}  # fmt: skip


class _Ask:
    """In the place of a structure: it is asked of the daemon when it is needed."""

    def __reduce__(self):
        return "_ASK"


_ASK = _Ask()


def _apply(trace, function, element):
    with trace:
        return _trace.result_of(function, element)


class Dataset(Sources, Order, Batching, Work, Keeping):
    """A sequence of elements, each a nest of dicts and tuples of tensors, as tf.data.Dataset.

    Iterating gives NumPy arrays over the daemon's memory, read-only and without a copy (penstock.attach
    says which kinds there are). Each `for` is a pass of its own from the beginning, with shuffles of
    their own unless reshuffle_each_iteration is False.

    The order depends on the files, the ops and their seeds alone. Arguments that tune tf.data's
    runtime (num_parallel_calls, AUTOTUNE, deterministic) are accepted and have no effect: all cores
    work, and deterministic=False is not faster here.

    Errors of the daemon name the line that made the stage; they are raised by the first iteration, by
    element_spec and by whatever else asks for types.
    """

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
        # Of from_tensor_slices: the structure and the arrays of what it was given, in order.
        self._given = None
        # Of a concatenation inside of flat_map: the datasets of one element each that it is of.
        self._parts = None

    def _then(self, op, fields, structure=..., cardinality=UNKNOWN, name=None, rows=None):
        """This dataset with one more stage.

        Args:
          fields: pairs of the message's field and its value; None leaves it out.
          structure: of the elements behind it; by default as before.
          rows: how many rows all elements have together, if that is known.
        """
        structure = self._known_structure if structure is ... else structure
        stages = (*self._stages, Stage(op, fields, name))
        dataset = self._like(stages, structure, cardinality)
        if rows is not None:
            dataset._rows = rows
        return dataset

    def _like(self, stages, structure, cardinality=UNKNOWN):
        """Those stages, where this dataset's are."""
        return Dataset(stages, structure, cardinality, self._options, self._window)

    def _whole(self, stages):
        """The stages of a pipeline."""
        return stages if self._window is None else self._window(stages)

    def get_single_element(self, name: Optional[str] = None) -> Any:
        """The only element: runs the dataset. InvalidArgumentError when there is none, or more than one."""
        if self._window is not None:
            from penstock import _windows

            return _windows.Value(self)
        elements = list(self.take(2))
        if len(elements) != 1:
            raise _errors.InvalidArgumentError(
                f"get_single_element takes a dataset of one element, found {'more' if elements else 'none'}"
            )
        return elements[0]

    # --- the rest of tf.data's interface ---

    def assert_cardinality(self, expected_cardinality: int, name: Optional[str] = None) -> Dataset:
        """States how many elements there are, for len(); others than that are an error when that is seen."""
        count = integer(expected_cardinality, "expected_cardinality")
        return self._then("assert_cardinality", [("cardinality", count)], cardinality=count, name=name)

    def pad_to_cardinality(self, cardinality: int, mask_key: str = "valid", name: Optional[str] = None) -> Dataset:
        """Adds elements of zeros until there are `cardinality`, and a feature `mask_key` that is true for the others.

        Elements are dicts.
        """
        count = integer(cardinality, "cardinality")
        if 0 <= count < self._count:
            raise ValueError(f"the dataset has {self._count} elements, more than {count}")
        if not isinstance(self._structure, dict):
            raise ValueError(f"pad_to_cardinality takes elements that are dicts, not {_shown(self._structure)}")
        return self._then(
            "pad_to_cardinality",
            [("cardinality", count), ("mask_key", mask_key)],
            structure={**self._structure, mask_key: None},
            cardinality=count,
            name=name,
        )

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """transformation_func(self), which gives a Dataset."""
        dataset = transformation_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError(f"transformation_func gives a Dataset, not {type(dataset).__name__}")
        return dataset

    def options(self) -> Options:
        """A penstock.Options of its own: what is written into it changes no dataset."""
        return Options().merge(self._options)

    def with_options(self, options: Any, name: Optional[str] = None) -> Dataset:
        """Accepts penstock.Options; those of TensorFlow have no effect."""
        if not isinstance(options, Options):
            options = Options()
        merged = self._options.merge(options)
        return Dataset(self._stages, self._known_structure, self._count, merged, self._window)

    def cardinality(self) -> int:
        """The number of elements, or penstock.INFINITE_CARDINALITY, or penstock.UNKNOWN_CARDINALITY."""
        return self._count

    def __len__(self) -> int:
        if self._count == INFINITE:
            raise TypeError("the dataset is infinite")
        if self._count == UNKNOWN:
            deciding = next((stage.op for stage in self._stages if stage.op in _BY_VALUE), None)
            why = "its files would have to be read" if deciding is None else f"behind {deciding} only the elements tell how many there are"
            raise TypeError(f"the dataset's length is unknown: {why}")
        return self._count

    def __bool__(self):
        return True

    @property
    def element_spec(self) -> Any:
        """The element's structure with a TensorSpec for each tensor. Asks the daemon."""
        pipeline = self._describe()
        return _structure.fill(_structure.from_json(pipeline["structure"]), iter(_specs(pipeline)))

    def __iter__(self) -> DatasetIterator:
        return DatasetIterator(self)

    def as_numpy_iterator(self) -> DatasetIterator:
        """As iter(dataset), with NumPy's scalars and bytes in the place of arrays without axes."""
        return NumpyIterator(self)

    def loader(
        self,
        socket: Optional[Union[str, os.PathLike]] = None,
        name: Optional[str] = None,
        group: str = "default",
        timeout: Optional[float] = None,
        reconnect: float = 60.0,
    ) -> DatasetIterator:
        """Runs the dataset in a daemon that other processes use too.

        Args:
          socket: the daemon's; by default the one of penstock.default_socket().
          name: the pipeline's there, which stays until `penstock delete NAME`; other processes read it with
            penstock.attach(name). Without one it is deleted with the iterator.
          group, timeout, reconnect: as penstock.attach.

        Returns:
          A DatasetIterator, whose seeds are the dataset's own in every pass.

        Raises:
          AlreadyExistsError: on the first element, when there is a pipeline of that name.
        """
        from penstock import _core

        socket = os.fspath(socket or _core.default_socket())
        return DatasetIterator(self, socket, name, group, timeout, first_pass=True, reconnect=reconnect)

    def spec_text(self, name: Optional[str] = None) -> str:
        """The pipeline as the text of a PipelineSpec, for `penstock create` and `penstock run`."""
        return Spec(self._stages, name, self._options).text

    to_textproto = spec_text

    def save_spec(self, path: Union[str, os.PathLike], name: Optional[str] = None) -> None:
        """Writes spec_text to a file; the pipeline's name is by default that of the file without its last suffix."""
        if name is None:
            name = os.path.splitext(os.path.basename(os.fspath(path)))[0]
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.spec_text(name))

    def skipped(self) -> _control.Skipped:
        """What the pass over this dataset that was ended or closed last has left out, of ignore_errors and on_damage: how many, and the first
        1,000 with file, offset and reason."""
        return self._skipped

    def explain(self) -> str:
        """What the daemon makes of it: stages, fused programs and memory, in words."""
        spec = Spec(self._stages, None, self._options)
        return _validate(spec)[1]

    def __repr__(self):
        stages = " | ".join(stage.name or stage.op for stage in self._stages)
        structure = "" if self._known_structure is _ASK else f", elements {_shown(self._known_structure)}"
        return f"<{type(self).__name__} {stages}{structure}>"

    # --- what others of this package use ---

    def _call(self, function):
        """A trace and what `function` returns for its element, whose parts it gets if that is a tuple."""
        trace = _trace.Trace(self)
        return trace, _apply(trace, function, trace.tensors_of(self._structure))

    def _traced(self, function, use, call=_apply):
        """What `use` makes of a dataset, the trace of `function` over its elements and what that returned.

        The dataset is this one; or, where `function` uses the element of a call around it, that of pairs with that element.
        """
        trace = _trace.Trace(self)
        try:
            return use(self, trace, call(trace, function, trace.tensors_of(self._structure)))
        except _trace.Captured as captured:
            from penstock import _nested

            found = _nested.with_element(self, captured.traces)
            if found is None:
                raise
        pairs, around = found
        trace = _trace.Trace(pairs)
        trace.adopt(around)
        return use(pairs, trace, call(trace, function, trace.tensors_of(pairs._structure)[0]))

    def _nest(self, op, function, fields, name):
        from penstock import _nested, _windows

        line = user_line()

        def use(dataset, trace, inside):
            if isinstance(inside, _windows.Value):
                inside = inside.dataset
            if not isinstance(inside, Dataset):
                raise _nested.not_a_dataset(op, inside)
            known = inside._known_structure
            flattened = _nested.flattened(op, inside._stages, name)
            if flattened is not None:
                return dataset._like((*dataset._stages, *flattened), known)
            stages = _nested.as_paths(dataset._stages) if _nested.reads_path(inside._stages) else dataset._stages
            nested = _nested.stage(op, inside._stages, fields, name, line)
            return dataset._like((*stages, nested), known)

        try:
            return self._traced(function, use, _nested.call)
        except _nested.PartAsPath:
            turns = dict(fields)
            made = _nested.of_known_elements(self, op, function, turns.get("cycle_length"), turns.get("block_length"))
            if made is None:
                raise
            return made

    def _where(self, op, predicate, name):
        from penstock import _python_calls

        line = user_line()

        def use(dataset, trace, result):
            if _python_calls.has_calls(trace, result):
                kept = _python_calls.where_by_call(dataset, op, trace, result, name, line)
                return kept if dataset is self else kept.map(lambda element, _: element)
            stage = _program.condition_stage(op, trace, result, name, line)
            kept = dataset._like((*dataset._stages, stage), dataset._known_structure)
            return kept if dataset is self else kept.map(lambda element, _: element)

        return self._traced(predicate, use)

    @property
    def _structure(self):
        if self._known_structure is _ASK:
            self._known_structure = _structure.from_json(self._describe()["structure"])
        return self._known_structure

    def _describe(self):
        if self._described is None:
            self._described = _validate(Spec(self._whole(self._stages), None, self._options))[0]
        return self._described

    def _type_of(self, trace, node):
        """The TensorSpec of a value inside a function given to map."""
        try:
            (spec,), _ = types_of(self._whole((*self._stages, *_program.type_stages(trace, node, user_line()))))
        except _errors.DataLossError:
            # The files are wrong, not the function.
            raise
        except _errors.InvalidArgumentError as error:
            raise _trace.TraceError(
                f"the type of this value is not known while tracing ({error})", "use functions that need none"
            ) from None
        return spec


def _merged_options(datasets):
    merged = Options()
    for dataset in datasets:
        merged = merged.merge(dataset._options)
    return merged


def _shown(structure):
    if structure is None:
        return "a tensor"
    if isinstance(structure, tuple):
        return f"({_trace.listed(map(_shown, structure))}{',' if len(structure) == 1 else ''})"
    return "{" + _trace.listed(key if inner is None else f"{key}: {_shown(inner)}" for key, inner in structure.items()) + "}"


def _validate(spec):
    try:
        return _daemon.with_private_daemon(lambda socket: _control.validate(socket, "check", spec.text))
    except _errors.Error as error:
        raise type(error)(spec.explain(str(error))) from None


def types_of(stages):
    """A TensorSpec for each tensor of the stages' elements, in order, and the rows of their batches."""
    pipeline, _ = _validate(Spec(stages))
    return _specs(pipeline), int(pipeline["batch_rows"])


def _specs(pipeline):
    """A TensorSpec for each tensor, in order."""
    return [
        TensorSpec(
            (None if int(size) < 0 else int(size) for size in tensor["shape"]),
            _dtypes.from_control(tensor["dtype"]),
            tensor["name"],
            tensor["kind"][len("TENSOR_KIND_") :].lower(),
            None if tensor["kind"] != "TENSOR_KIND_RAGGED" else np.int32 if tensor.get("int32_row_splits") else np.int64,
        )
        for tensor in pipeline["element"]
    ]
