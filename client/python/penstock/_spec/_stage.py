"""One stage of a spec, with the line of the user's code that made it."""

import enum
import functools
import operator
import os
import re
import threading

from penstock import _row
from penstock._spec import _textproto
from penstock._spec._lines import user_line


class Seed:
    """A seed that each pass over the dataset takes anew, as tf.data's ops do.

    The first pass has the seed itself; the later ones have seeds derived from it and from their
    number, unless `reshuffle` is false. A seed that was not given is drawn once. Datasets that were
    made of one another share it, and count their passes together.
    """

    def __init__(self, given, reshuffle=True):
        self.given = given
        self._reshuffle = reshuffle
        # One that a signal's handler may take in the thread that has it.
        self._lock = threading.RLock()
        self._num_passes = 0
        self._drawn = None

    def __getstate__(self):
        # Copies agree, in other processes too: what is not given is drawn before.
        self.base()
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def base(self):
        """The first pass' seed."""
        if self.given is not None:
            return self.given
        with self._lock:
            if self._drawn is None:
                drawn = int.from_bytes(os.urandom(7), "little")
                if self._drawn is None:
                    self._drawn = drawn
            return self._drawn

    def next(self):
        """The seed of the next pass."""
        with self._lock:
            number = self._num_passes
            self._num_passes += 1
        return self.of_pass(number)

    @property
    def num_passes(self):
        """Passes that have begun."""
        return self._num_passes

    @num_passes.setter
    def num_passes(self, count):
        with self._lock:
            self._num_passes = count

    def of_pass(self, number):
        """The seed of a pass, counted from 0."""
        base = self.base()
        if number == 0 or not self._reshuffle:
            return base
        # As many steps of splitmix64 from there, without the sign.
        return _row.spread(base + (number - 1) * _row.STEP) >> 1


class _FirstSeed(Seed):
    """Another one's seed, as its first pass has it, in all passes."""

    def __init__(self, seed):
        super().__init__(seed.given, reshuffle=False)
        self.origin = seed

    def base(self):
        return self.origin.base()


def first_seed(seed):
    """The Seed that several places of a spec have in common."""
    while isinstance(seed, _FirstSeed):
        seed = seed.origin
    return seed


class SeededText:
    """An expression whose calls draw by a Seed.

    Attributes:
      parts: texts, and pairs of a text and a Seed: an argument, which is left out where its seed is left to the daemon.
    """

    __slots__ = ("parts",)

    def __init__(self, parts):
        self.parts = tuple(parts)


def of_first_pass(value):
    """Stages, or a part of one, whose seeds are those of the first pass in all passes: what a file keeps is one pass."""
    if isinstance(value, Seed):
        return _FirstSeed(value)
    if isinstance(value, SeededText):
        return SeededText(part if isinstance(part, str) else (part[0], _FirstSeed(part[1])) for part in value.parts)
    if isinstance(value, Stage):
        return Stage(value.op, [(field, of_first_pass(inner)) for field, inner in value.fields], value.name, value.line)
    if isinstance(value, Nested):
        return Nested(of_first_pass(value.stages))
    if isinstance(value, _textproto.Message):
        return _textproto.Message(*((field, of_first_pass(inner)) for field, inner in value.fields))
    if type(value) in (list, tuple):
        return type(value)(of_first_pass(inner) for inner in value)
    return value


class Code(str):
    """A hash of the user's code, which a stage holds for people to see. Spec gathers them, so that a resume can tell that the code has changed."""


class Trait(enum.Flag):
    """What an op is like, for code that knows no op by its name. The module of an op's method declares it."""

    # A source of records that, where it names no files, reads the file that an element of the stages around it is the path of.
    READS_PATH = enum.auto()
    # Elements go through it one by one, and none waits for another: what a flat_map does with them inside, it does behind as well.
    ROW_BY_ROW = enum.auto()
    # The same for an interleave: as many elements come out as go in.
    ONE_BY_ONE = enum.auto()
    # Paths that go through it stay paths of the same files.
    MOVES_PATHS = enum.auto()
    # A source whose elements are no paths that are known before.
    GIVES_NO_PATHS = enum.auto()
    # What stands in front of it is its first input.
    TAKES_FRONT = enum.auto()
    # Its nested stages are made for each of its elements, or for each window of them.
    NESTS_ELEMENTS = enum.auto()
    # It chooses and orders elements by their places alone: of an object that is indexed it chooses and orders the indices, in front of what fetches elements.
    BY_PLACE = enum.auto()
    # Only the elements tell how many there are behind it.
    BY_VALUE = enum.auto()
    # It leaves out elements on which a stage before it failed.
    LEAVES_OUT = enum.auto()


_traits = {}
_parts = {}


def declare(op, *traits, part=None):
    """Says what an op is like; without it, it is nothing of that.

    Args:
      part: the field that tells which of several parts of the elements it gives, by which ranks divide them among each other.
    """
    _traits[op] = functools.reduce(operator.or_, traits, Trait(0))
    if part is not None:
        _parts[op] = part


def is_(op, trait):
    """Whether the op of that name is like that."""
    return trait in _traits.get(op, Trait(0))


def of_all_parts(value):
    """Stages, or a part of one, without what tells which part of the elements they give: those of ranks that divide them are equal then."""
    if isinstance(value, Stage):
        part = _parts.get(value.op)
        return Stage(value.op, [(field, of_all_parts(inner)) for field, inner in value.fields if field != part], value.name, value.line)
    if isinstance(value, Nested):
        return Nested(of_all_parts(value.stages))
    return type(value)(map(of_all_parts, value)) if type(value) in (list, tuple) else value


class Stage:
    """An op with its fields.

    Fields are those of its message, as in _textproto, whose values may also be a Seed, Stages, or
    lists of Inputs.
    """

    __slots__ = ("op", "fields", "name", "line")

    def __init__(self, op, fields, name=None, line=None):
        self.op = op
        self.fields = tuple(fields)
        self.name = name
        self.line = line or user_line()

    def is_(self, trait):
        return is_(self.op, trait)


class Nested:
    """A message whose one field is a list of stages, such as Input."""

    __slots__ = ("stages",)

    def __init__(self, stages):
        self.stages = tuple(stages)


def _has_seed(fields):
    """Whether one of them is a Seed, or of a message in one of them."""
    return any(isinstance(value, Seed) or isinstance(value, _textproto.Message) and _has_seed(value.fields) for _, value in fields)


def with_seed(stage, seed):
    """The stage with that number in the place of its own Seeds."""

    def seeded(value):
        if isinstance(value, Seed):
            return Seed(seed)
        return _textproto.Message(*((field, seeded(inner)) for field, inner in value.fields)) if isinstance(value, _textproto.Message) else value

    return Stage(stage.op, [(field, seeded(value)) for field, value in stage.fields], stage.name, stage.line)


class Spec:
    """Stages written as the text of a PipelineSpec.

    Attributes:
      text: the text.
      lines: a dict from the stages' names, as the daemon gives them, to the lines that made them.
      seeds: the seeds in the order of the text; None for one that is left to the daemon.
      drawn_by: the Seeds that they are of.
      codes: the hashes of Python functions in it, in order.
      functions: those functions.
    """

    def __init__(self, stages, name=None, options=None, seed=lambda seed: seed.given):
        self.lines = {}
        self.seeds = []
        self.drawn_by = []
        self.codes = []
        self.functions = []
        self._uses = {}
        self._seed = seed
        rows = []
        if name:
            rows.append(f"name: {_textproto.quote(name)}")
        rows += [_textproto.write_fields([("stage", self._message(stage))]) for stage in stages]
        if options is not None and options.workers:
            rows.append(f"workers: {options.workers}")
        ring = {} if options is None else {"slots": options.slots, "slot_bytes": options.slot_bytes}
        if any(ring.values()):
            rows.append(f"ring {{ {' '.join(f'{name}: {number}' for name, number in ring.items() if number)} }}")
        if options is not None and options.max_work_bytes:
            rows.append(f"max_work_bytes: {options.max_work_bytes}")
        self.text = "\n".join(rows) + "\n"

    def _message(self, stage):
        # The daemon's rule (StageNames): an op's name, from its second use on with the ordinal, where
        # nested stages count behind the op that holds them.
        ordinal = self._uses[stage.op] = self._uses.get(stage.op, 0) + 1
        name = stage.name or (stage.op if ordinal == 1 else f"{stage.op}_{ordinal}")
        self.lines[name] = stage.line
        fields = [(field, self._value(value)) for field, value in stage.fields]
        # Draws are told apart by their seeds alone, as tf.data's: wherever a dataset stands, and whatever its stages are called, it has one order.
        is_seeded = name != stage.op and _has_seed(stage.fields)
        draw_name = stage.op if is_seeded else None
        return _textproto.Message(("name", stage.name), ("draw_name", draw_name), (stage.op, _textproto.Message(*fields)))

    def _value(self, value):
        if isinstance(value, Seed):
            return self._drawn(value)
        if isinstance(value, Code):
            self.codes.append(str(value))
            return str(value)
        if isinstance(value, SeededText):
            return "".join(part if isinstance(part, str) else self._argument(*part) for part in value.parts)
        if isinstance(value, Stage):
            return self._message(value)
        if isinstance(value, Nested):
            return _textproto.Message(("stage", [self._message(stage) for stage in value.stages]))
        if isinstance(value, _textproto.Message):
            return _textproto.Message(*((field, self._value(inner)) for field, inner in value.fields))
        if isinstance(value, (list, tuple)):
            return [self._value(item) for item in value]
        if getattr(value, "is_function", False):
            self.functions.append(value)
        return value.spec_value() if hasattr(value, "spec_value") else value

    def _drawn(self, seed):
        self.drawn_by.append(seed)
        self.seeds.append(self._seed(seed))
        return self.seeds[-1]

    def _argument(self, text, seed):
        drawn = self._drawn(seed)
        return "" if drawn is None else f"{text}{drawn}"

    def explain(self, message):
        """The daemon's message with the lines that made the stages it names."""
        notes = []
        for name in dict.fromkeys(re.findall(r'stage "?([\w.-]+)"?', message)):
            line = self.lines.get(name)
            if line is not None:
                text = line.text()
                notes.append(f'\n  stage "{name}" was made at {line}' + (f": {text}" if text else ""))
        if "raise ring { slot_bytes" in message:
            notes.append("\n  in Python: options = penstock.Options(); options.ring.slot_bytes = N; dataset.with_options(options)")
        if "max_work_bytes in the spec raises it" in message:
            notes.append("\n  in Python: options = penstock.Options(); options.memory.max_work_bytes = N; dataset.with_options(options)")
        return message + "".join(notes)
