"""penstock.Dataset: tf.data's names over the native engine.

A Dataset is a chain of stages and never changes; its methods give longer ones. Nothing runs before
an iteration. Its methods stand by subject in _sources, _order, _batching, _work and _keeping. To add an op: a method there that
returns self._then(op, fields, …), with the fields of its message in proto/penstock/v1/ops.proto.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Optional, Union

from penstock import _core, _errors, _structure
from penstock._dataset import _element, _nested
from penstock._dataset._arguments import integer
from penstock._dataset._batching import Batching
from penstock._dataset._cardinality import INFINITE, UNKNOWN
from penstock._dataset._chain import ASK, Chain, shown
from penstock._dataset._described import counted, specs, validated
from penstock._dataset._json import Json
from penstock._dataset._keeping import Keeping
from penstock._dataset._order import Order
from penstock._dataset._parts import Value
from penstock._dataset._paths import PartAsPath
from penstock._dataset._python_calls import where_by_call
from penstock._dataset._sources import Sources
from penstock._dataset._watched import Watched
from penstock._dataset._work import Work
from penstock._options import Options
from penstock._running._iterator import DatasetIterator
from penstock._running._numpy_iterator import NumpyIterator
from penstock._spec._lines import user_line
from penstock._spec._stage import Spec, Trait
from penstock._tracing import _program, _refusals, _trace, _user_function
from penstock._tracing._cut import has_calls


def _apply(trace, function, element):
    with trace:
        return _user_function.result_of(function, element)


class Dataset(Sources, Order, Batching, Work, Json, Keeping, Watched, Chain):
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

    def get_single_element(self, name: Optional[str] = None) -> Any:
        """The only element: runs the dataset. InvalidArgumentError when there is none, or more than one."""
        if self._window is not None:
            return Value(self)
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
            raise ValueError(f"pad_to_cardinality takes elements that are dicts, not {shown(self._structure)}")
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
        if self._indices is not None:
            return self._fetched_by(self._indices.with_options(options, name))
        merged = self._options.merge(options)
        dataset = Dataset(self._stages, self._known_structure, self._count, merged, self._window)
        dataset._shuffled = self._shuffled
        return dataset

    def cardinality(self) -> int:
        """The number of elements, or penstock.INFINITE_CARDINALITY, or penstock.UNKNOWN_CARDINALITY."""
        return self._count

    def __len__(self) -> int:
        """The number of elements. Where it follows from files, the daemon counts these, or the records by their indices; it builds none.

        Raises:
          TypeError: there is no end, or nobody knows before a pass; the message says why, and what to do.
        """
        if self._count == INFINITE:
            raise TypeError("the dataset is infinite")
        if self._count != UNKNOWN:
            return self._count
        deciding = next((stage.op for stage in self._stages if stage.is_(Trait.BY_VALUE)), None)
        if deciding is not None:
            why = f"behind {deciding} only the elements tell how many there are"
        elif self._window is not None:
            why = "it is another one for each element around it"
        else:
            if self._length is None:
                self._length, why = counted(Spec(self._stages, None, self._options))
            if self._length is not None:
                return self._length
        raise TypeError(f"the dataset's length is unknown: {why}; assert_cardinality(n) states it")

    def __bool__(self):
        return True

    @property
    def element_spec(self) -> Any:
        """The element's structure with a TensorSpec for each tensor. Asks the daemon."""
        pipeline = self._describe()
        return _structure.fill(_structure.from_json(pipeline["structure"]), iter(specs(pipeline)))

    def _named_specs(self):
        """Pairs of a tensor's path and its TensorSpec, in order. Asks the daemon."""
        pipeline = self._describe()
        return zip(_structure.paths(_structure.from_json(pipeline["structure"])), specs(pipeline))

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

    def explain(self) -> str:
        """What the daemon makes of it: stages, fused programs and memory, in words."""
        spec = Spec(self._stages, None, self._options)
        return validated(spec)[1]

    def __repr__(self):
        stages = " | ".join(stage.name or stage.op for stage in self._stages)
        structure = "" if self._known_structure is ASK else f", elements {shown(self._known_structure)}"
        reader = "" if self._shuffled is None else f", {self._shuffled.said}"
        return f"<{type(self).__name__} {stages}{structure}{reader}>"

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
        except _refusals.Captured as captured:
            found = _element.with_element(self, captured.traces)
            if found is None:
                raise
        pairs, around = found
        trace = _trace.Trace(pairs)
        trace.adopt(around)
        return use(pairs, trace, call(trace, function, trace.tensors_of(pairs._structure)[0]))

    def _nest(self, op, function, fields, name):
        line = user_line()

        def use(dataset, trace, inside):
            if isinstance(inside, Value):
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
            return self._traced(function, use, _element.call)
        except PartAsPath:
            turns = dict(fields)
            made = _nested.of_known_elements(self, op, function, turns.get("cycle_length"), turns.get("block_length"))
            if made is None:
                raise
            return made

    def _where(self, op, predicate, name):
        line = user_line()

        def use(dataset, trace, result):
            if has_calls(trace, result):
                kept = where_by_call(dataset, op, trace, result, name, line)
                return kept if dataset is self else kept.map(lambda element, _: element)
            stage = _program.condition_stage(op, trace, result, name, line)
            kept = dataset._like((*dataset._stages, stage), dataset._known_structure)
            return kept if dataset is self else kept.map(lambda element, _: element)

        return self._traced(predicate, use)


Chain.whole = Dataset
