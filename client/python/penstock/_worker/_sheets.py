"""The rows of a sheet, computed one after the other."""

import os
import sys

import numpy as np

from penstock import _row, _structure
from penstock._worker import _package
from penstock._worker._arguments import caller, column, with_constants, with_list, with_tensors
from penstock._worker._describing import describing
from penstock._worker._errors import row_error
from penstock._worker._features import Feature, places
from penstock._worker._iterables import iterating
from penstock._worker._outputs import Output, Rows, RowsOfElements
from penstock._worker._results import flattener
from penstock._worker._seeds import ImportAside, Seeds
from penstock._worker._trays import Progress, Tray


class Sheets:
    """Computes sheets.

    Args:
      inputs, outputs: the desk's files.
      forked: a list, which is not empty in a child of this process.
    """

    def __init__(self, function, configuration, inputs, outputs, forked):
        self.forked = forked
        self.name = configuration["name"]
        self.threads = configuration["threads"]
        self.files = inputs, outputs
        self.trays = {}
        self.progress = Progress(outputs)
        _row.key = configuration["key"]
        sys.meta_path.insert(0, ImportAside(self.progress.aside))
        _package.aside = self.progress.aside
        self.inputs = [Feature(described) for described in configuration["inputs"]]
        # Each row's identity.
        self.inputs.append(Feature({"name": "", "dtype": "uint64", "shape": []}))
        describes, iterates = configuration["describes"], configuration.get("iterates", False)
        yields = configuration.get("yields", False)
        made_of = [Output(described, configuration.get("casts", False), yields and not describes) for described in configuration["outputs"]]
        wanted = None if describes else _structure.from_json(configuration["output_structure"])
        flatten = flattener(wanted)
        # What has axes is shown in place, and may be written into; numbers and strings are objects of their own.
        self.shows_inputs = any(feature.shape for feature in self.inputs)
        self.seeds = Seeds(configuration["key"], configuration["seeds"] and not iterates)
        given = _structure.from_json(configuration["input_structure"])
        self.takes_one = given is None
        if iterates:
            self.ahead, self.lone = None, None
            self.call, self.rows = iterating(function, given, configuration, made_of, flatten, self.progress.words)
            return
        function = as_called(function, configuration)
        if describes:
            function = describing(function, self.name, self.inputs[:-1], yields)
        # A function may want to know of a sheet's rows before it is called for each.
        self.ahead = getattr(function, "ahead", None) if self.takes_one else None
        self.call = function if self.takes_one else caller(function, given)
        self.rows = (RowsOfElements if yields and not describes else Rows)(made_of, flatten)
        # Of a lone tensor, the most frequent one, nothing is packed and unpacked.
        self.lone = made_of[0] if wanted is None and made_of[0].feature.row_bytes is not None else None

    def work(self, number, sheet, rows, size):
        """Computes a sheet: how many rows are made, the error of the one behind them or None, and the bytes that they take."""
        tray = self.trays.get(number)
        if tray is None:
            tray = self.trays[number] = Tray(number, *self.files)
        tray.reach_inputs(size)
        while True:
            self.progress.begin(sheet)
            self.seeds.begin()
            made, error = self._compute(tray, rows)
            self.progress.end()
            # The next sheet is seen, or, where generators are to be seeded, this one as it was handed over.
            if self.shows_inputs:
                tray.drop_inputs(size)
            if not self.seeds.found():
                return made, error, self.rows.end

    def _compute(self, tray, rows):
        words, call, forked, sink = self.progress.words, self.call, self.forked, self.rows
        found, _ = places(self.inputs, rows)
        columns = [column(feature, tray.inputs, place, rows) for feature, place in zip(self.inputs, found)]
        identities = columns.pop()
        paths = identities.tolist()
        sink.begin(tray, rows)
        seeds = self.seeds.used
        keys = self.seeds.keys(identities) if seeds else None
        put, lone = sink.put, self.lone
        if lone is not None:
            target, dtype, shape, array = lone.rows, lone.feature.dtype, lone.feature.shape, np.ndarray
        row = 0
        if self.ahead is not None and keys is None and rows > 1:
            words[1] = 1  # who dies here, dies of its first row, which is then tried alone
            self.ahead(columns[0])
        try:
            for value in columns[0] if self.takes_one else zip(*columns):
                words[1] = row + 1
                _row.path = paths[row]
                _row.is_fresh = True
                if keys is not None:
                    key = keys[row]
                    for seed in seeds:
                        seed(key)
                made = call(value)
                if forked:
                    # A child that the function has left behind, of which nothing is wanted.
                    os._exit(0)
                if lone is None:
                    put(row, made)
                elif type(made) is array and made.dtype is dtype and made.shape == shape:
                    target[row] = made
                else:
                    put(row, made)
                row += 1
        except BaseException as error:  # whatever it is, it is that row's
            return row, row_error(self.name, error)
        return rows, None


def as_called(function, configuration):
    """The function as the daemon's configuration has it called; where some of its arguments are constants, they come with it."""
    function, constants = function if isinstance(function, tuple) else (function, None)
    if configuration.get("tensors", False):
        function = with_tensors(function)
    if constants:
        function = with_constants(function, constants)
    return with_list(function) if configuration.get("lists", False) else function
