"""What is computed of elements, and what their values decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Dict, Optional

import numpy as np

from penstock import io
from penstock._dataset import _cardinality
from penstock._dataset._arguments import at_least, check_unused, optional, turns
from penstock._dataset._python import map_by_python
from penstock._dataset._python_calls import filter_by_python, flat_map_by_python
from penstock._spec._lines import user_line
from penstock._spec._stage import Seed, Trait, declare
from penstock._tracing import _program, _refusals

if TYPE_CHECKING:
    from penstock._dataset import Dataset


declare("map", Trait.ROW_BY_ROW, Trait.ONE_BY_ONE)
declare("python", Trait.ONE_BY_ONE)
declare("filter", Trait.ROW_BY_ROW, Trait.BY_VALUE)
declare("unbatch", Trait.ROW_BY_ROW, Trait.BY_VALUE)
declare("interleave", Trait.NESTS_ELEMENTS, Trait.BY_VALUE)
declare("flat_map", Trait.NESTS_ELEMENTS, Trait.BY_VALUE)
declare("ignore_errors", Trait.LEAVES_OUT, Trait.BY_VALUE)
declare("rejection_resample", Trait.BY_VALUE)
declare("take_while", Trait.BY_VALUE)
declare("unique", Trait.BY_VALUE)


def _refuse_options(op, given):
    if unused := [argument for argument, value in given.items() if value is not None]:
        raise TypeError(f"{op} takes {', '.join(unused)} with python=True alone")


class Work:
    """Methods of Dataset that take traced functions, or look at values."""

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Optional[int] = None,
        deterministic: Optional[bool] = None,
        synchronous: Optional[bool] = None,
        use_unbounded_threadpool: Optional[bool] = None,
        name: Optional[str] = None,
        *,
        python: bool = False,
        output: Any = None,
        version: str = "",
        timeout_ms: Optional[int] = None,
        workers: Optional[int] = None,
        max_rows_per_worker: Optional[int] = None,
        threads: Optional[int] = None,
        seed: Optional[int] = None,
        seeds: bool = True,
    ) -> Dataset:
        """Computes new elements from each element.

        `map_func` is called once, now, with stand-ins for the tensors; what it does to them with operators,
        NumPy's functions, penstock.image and penstock.io becomes a native program. docs/python.md says
        what can be traced.

        With `python` it is any function, called for each element in worker processes of this interpreter (docs/python.md, "Python functions"). It gets
        NumPy arrays, which it may write into, NumPy's numbers, and bytes for strings; behind `batch` it gets whole batches. It returns NumPy arrays,
        numbers, strings or torch tensors in a nest of dicts and tuples. Order and bytes do not depend on the number of workers. An exception, a crash or
        a timeout is that element's failure, which `ignore_errors` leaves out.

        Args:
          map_func: gets the element, or the parts of a tuple as several arguments; returns the new one:
            tensors and constants in a nest of dicts and tuples.
          python: runs it in worker processes. The arguments below belong to that.
          output: what it returns: a nest of penstock.TensorSpec. By default that is learned from the first element, whose shapes all are to
            have.
          version: your own word for what it computes. A cursor is not resumed by another one, unless that is allowed; a changed function of the same
            version is resumed with a warning.
          timeout_ms: the most that an element may take.
          workers: processes; by default as many as the elements need, from one to the number of processors.
          max_rows_per_worker: elements behind which a worker is replaced, for functions that leak.
          threads: of NumPy, OpenCV, torch and the like in each worker; by default 1.
          seed: what draws are keyed by, as that of shuffle.
          seeds: whether each element has draws of its own of the generators of random, NumPy and torch, those that the function uses. penstock.rng()
            has them always.

        Raises:
          TraceError: `map_func` does something that has no native form; it names the line.
          TypeError: with `python`, it cannot be pickled; says what of it cannot.
        """
        check_unused(num_parallel_calls)
        if python:
            return map_by_python(
                self, map_func, output, version, timeout_ms, workers, max_rows_per_worker, threads, seed, seeds, name
            )  # fmt: skip
        given = {
            "output": output, "version": version or None, "timeout_ms": timeout_ms, "workers": workers,
            "max_rows_per_worker": max_rows_per_worker, "threads": threads, "seed": seed, "seeds": None if seeds else seeds,
        }  # fmt: skip
        _refuse_options("map", given)
        line = user_line()

        def use(dataset, trace, result):
            stages, structure = _program.build(trace, result, dataset._structure, name, line)
            return dataset._like((*dataset._stages, *stages), structure, dataset._count)

        try:
            return self._traced(map_func, use)
        except _refusals.Captured:
            raise
        except _refusals.TraceError as error:
            error.name_other_way("map(f, python=True) runs any function, in worker processes (docs/python.md)")
            raise

    def parse_example(
        self,
        features: Dict[str, Any],
        num_parallel_calls: Optional[int] = None,
        deterministic: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Parses each element, a serialized tf.train.Example, into a dict.

        Args:
          features: a dict from keys to penstock.io.FixedLenFeature, FixedLenSequenceFeature, VarLenFeature, SparseFeature and
            RaggedFeature. Behind `batch` each row is parsed, as tf.io.parse_example does.
        """
        check_unused(num_parallel_calls)
        stage = io.example_stage(features, name)
        structure = {key: None for key in features}
        return self._like((*self._stages, stage), structure, self._count)

    # --- datasets of elements ---

    def interleave(
        self,
        map_func: Callable[..., Dataset],
        cycle_length: Optional[int] = None,
        block_length: Optional[int] = None,
        num_parallel_calls: Optional[int] = None,
        deterministic: Optional[bool] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """The elements of datasets that are each made of one element, in turns.

        `paths.interleave(penstock.TFRecordDataset)` reads files in turns; `rows.interleave(Dataset.from_tensor_slices)` takes slices
        of several elements in turns.

        Args:
          map_func: called once, with stand-ins for the element. It returns a dataset: of a reader of the path that it gets, as
            lambda path: penstock.TFRecordDataset(path).map(...); of the element's values, by Dataset.from_tensors, from_tensor_slices
            or range; or of nothing of it. Functions given to that dataset's map, filter and take_while may use the element too.
          cycle_length: datasets at a time; 16 by default, and with AUTOTUNE. At most 64 where values make them.
          block_length: elements of each before the turn passes on; 1 by default.
        """
        check_unused(num_parallel_calls)
        fields = [
            ("cycle_length", turns(cycle_length, "cycle_length") or 16),
            ("block_length", None if block_length is None else at_least(1, block_length, "block_length")),
        ]
        return self._nest("interleave", map_func, fields, name)

    def flat_map(
        self, map_func: Callable[..., Any], name: Optional[str] = None, *, python: bool = False, output: Any = None, **options: Any
    ) -> Dataset:
        """The elements of datasets that are each made of one element, one dataset after another.

        Args:
          map_func: as interleave's. With `python` any function, which worker processes call as those of map: a generator, or a function that returns a
            list. It yields any number of elements; all that it yields for one element are in memory together.
          output: with `python`, what each of them is, as map's. Sizes may differ (None) in declared arrays of numbers. By default it is learned from the first
            one that is yielded.
          **options: with `python`, version, timeout_ms, workers, max_rows_per_worker, threads, seed and seeds, as map's.
        """
        if python:
            return flat_map_by_python(self, map_func, output, name, options)
        _refuse_options("flat_map", {"output": output, **options})
        return self._nest("flat_map", map_func, [], name)

    # --- where values decide the order ---

    def filter(self, predicate: Callable[..., Any], name: Optional[str] = None, *, python: bool = False, **options: Any) -> Dataset:
        """The elements for which `predicate`, traced as in map, is true.

        Args:
          predicate: with `python` any function, which worker processes call as those of map; it returns a bool.
          **options: with `python`, version, timeout_ms, workers, max_rows_per_worker, threads, seed and seeds, as map's.
        """
        if python:
            return filter_by_python(self, predicate, name, options)
        _refuse_options("filter", options)
        try:
            return self._where("filter", predicate, name)
        except _refusals.Captured:
            raise
        except _refusals.TraceError as error:
            error.name_other_way("filter(f, python=True) runs any function, in worker processes (docs/python.md)")
            raise

    def take_while(self, predicate: Callable[..., Any], name: Optional[str] = None) -> Dataset:
        """The elements before the first for which `predicate`, traced as in map, is false."""
        return self._where("take_while", predicate, name)

    def unbatch(self, name: Optional[str] = None) -> Dataset:
        """An element of each row of the tensors' first axis, which all of them have in common."""
        return self._then("unbatch", [], cardinality=self._rows, name=name)

    def ignore_errors(
        self,
        log_warning: bool = False,
        name: Optional[str] = None,
        *,
        max_skipped: Optional[int] = None,
        max_skipped_fraction: Optional[float] = None,
    ) -> Dataset:
        """Leaves out elements on which a stage before this one fails. A pass warns of them at its end, and skipped() of the dataset, its iterator
        or a loader lists them, as `penstock skipped` does.

        Only what is computed can fail: where a slice or a crop of a decoded JPEG or PNG file is taken, the part alone is decoded, and an element
        whose image is broken elsewhere stays.

        What fails in front of a batch is left out of it alone, where tf.data loses the batch or a part of it; what fails behind one costs
        the batch, and so do rows that differ in shape. Inputs of zip stay in step: an error behind a filter in one of them still ends the dataset.

        Args:
          max_skipped: more of them in a pass are an error.
          max_skipped_fraction: a larger part of all elements is an error.
        """
        fields = [
            ("max_skipped", optional(max_skipped, "max_skipped")),
            ("max_skipped_fraction", None if max_skipped_fraction is None else float(max_skipped_fraction)),
        ]
        return self._then("ignore_errors", fields, name=name)

    def unique(self, name: Optional[str] = None) -> Dataset:
        """The first of equal elements, which are one tensor of int32, int64 or strings."""
        return self._then("unique", [], name=name)

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: Optional[int] = None,
        name: Optional[str] = None,
    ) -> Dataset:
        """Leaves out elements at random so that classes become as frequent as they should be: pairs (class, element).

        Args:
          class_func: traced as in map; returns an integer from 0 to the number of classes - 1.
          target_dist: how frequent each class is to be.
          initial_dist: how frequent each is; by default as frequent as it has been so far.
          seed: as shuffle.
        """
        line = user_line()
        trace, result = self._call(class_func)
        more = [
            ("target_dist", [float(value) for value in np.asarray(target_dist).ravel()]),
            ("initial_dist", None if initial_dist is None else [float(value) for value in np.asarray(initial_dist).ravel()]),
            ("seed", Seed(optional(seed, "seed"))),
        ]
        stage = _program.condition_stage("rejection_resample", trace, result, name, line, "class_func", "integer", more)
        return self._like((*self._stages, stage), (None, self._structure), _cardinality.of_values(self._count))

    # --- states ---

    def scan(self, initial_state: Any, scan_func: Callable[[Any, Any], Any], name: Optional[str] = None) -> Dataset:
        """Computes new elements from each element and a state, which it renews.

        Args:
          initial_state: a nest of numbers, strings and arrays.
          scan_func: traced as in map; gets the state and the element, and returns the new state, of the same types, and
            the new element.
        """
        from penstock._dataset import _state

        return _state.scan(self, initial_state, scan_func, name)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any], name: Optional[str] = None) -> Any:
        """The state behind the last element: runs the dataset.

        Args:
          initial_state: a nest of numbers, strings and arrays.
          reduce_func: traced as in map; gets the state and an element, and returns the new state.

        Returns:
          The state as NumPy arrays. Of a window, inside of a function given to `window(…).map`: a stand-in for it.
        """
        from penstock._dataset import _state

        return _state.reduce(self, initial_state, reduce_func, name)
