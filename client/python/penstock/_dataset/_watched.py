"""What is told of the passes over a dataset, and how notebooks show it."""

from __future__ import annotations

import os
import weakref
from typing import Any, Dict, Union

from penstock import _control, _errors, _html
from penstock._running._watching import Profile


class Watched:
    """Methods of Dataset that look at its passes."""

    def stats(self) -> Dict[str, Any]:
        """What the pass over this dataset that was begun last has seen; behind its end too. See penstock.DatasetIterator.stats.

        Returns:
          A dict: batches, waits, wait_seconds and more (int, float); "bottleneck" and "sentence" (str): what holds the pass up, as `penstock top`
          tells. Empty where no pass has begun.
        """
        iterator = self._begun() if self._begun is not None else None
        return dict(self._stats) if iterator is None or iterator.closed else iterator.stats()

    def profile(self, path: Union[str, os.PathLike], seconds: float = 1.0) -> Profile:
        """Writes what each worker does for the pass that was begun last, to a file for ui.perfetto.dev.

        It goes on beside the loop over the elements:

            for step, batch in enumerate(dataset):
                if step == 100:
                    dataset.profile("trace.json")

        Args:
          path: the file, which is written at the end of the time.
          seconds: 0.001 to 60, from now on.

        Returns:
          A Profile, whose wait() returns when the file is there; `with` over it waits too.

        Raises:
          FailedPreconditionError: no pass is under way.
        """
        iterator = self._begun() if self._begun is not None else None
        if iterator is None or iterator.closed:
            raise _errors.FailedPreconditionError("no pass over this dataset is under way: there is nothing to profile")
        return iterator.profile(path, seconds)

    def skipped(self) -> _control.Skipped:
        """What the pass over this dataset that was ended or closed last has left out, of ignore_errors and on_damage: how many, and the first
        1,000 with file, offset and reason."""
        return self._skipped

    def _iterator_begun(self, iterator):
        # Whoever lets go of an iterator ends its pass.
        self._begun = weakref.ref(iterator)

    def _repr_html_(self):
        """A table of the stages and one of an element's tensors, for notebooks. Asks the daemon for the types."""
        stages = [(stage.name or stage.op, stage.op, str(stage.line)) for stage in self._stages]
        try:
            tensors = [_html.of_spec(name, spec) for name, spec in self._named_specs()]
        except _errors.Error as error:
            return _html.table(("stage", "op", "made at"), stages) + _html.error(error)
        return _html.table(("stage", "op", "made at"), stages) + _html.table(("tensor", "type", "shape"), tensors)
