"""The elements of a Python iterable by their numbers, in a worker process (Dataset.from_generator).

One process goes through the iterable, and is asked for elements mostly in order; some that it has given lately
are kept, as those behind one that fails are asked for again. For others it begins anew: at a state that is at hand, or at the first element.
"""

import ast
import collections
import inspect
import sys
import time
import zlib

MAX_STATE_BYTES = 768
# States are asked for no more often: each may cost as much as an element.
STATE_NS = 20_000_000
KEPT_ELEMENTS, KEPT_BYTES = 256, 32 << 20

State = collections.namedtuple("State", "number bytes")


def told(text):
    print(f"penstock: {text}", file=sys.stderr, flush=True)


class Elements:
    """Called with a pass, a number and a state in front of it; gives the element's tensors, the number behind it, whether there is one, and a state.

    Args:
      make: an iterable, or a function that returns one.
      to_arrays: a function of an element: its tensors in order, checked, as arrays of their own.
      nothing: such tensors in the place of an element behind the last one.
      generators: the global random generators, to be seeded by a key; or None.
      row: the module _row.
      go_through: is told the number of each element on the way to the one that is asked for, and None in front of that.
    """

    def __init__(self, name, make, to_arrays, nothing, generators, row, go_through):
        self.name, self.make, self.to_arrays, self.nothing = name, make, to_arrays, nothing
        self.generators, self.row, self.go_through = generators, row, go_through
        self.key = row.key
        self.takes_position = callable(make) and "position" in parameters(make)
        self.pass_ = self.iterator = None
        self.forget()

    def forget(self):
        self.kept = collections.OrderedDict()  # by number: a result, or an exception; and bytes
        self.kept_bytes = 0

    def __call__(self, pass_, number, state_number, state):
        pass_, number = int(pass_), int(number)
        if pass_ != self.pass_ or self.iterator is None or number < self.next and number not in self.kept:
            self.begin(pass_, State(int(state_number), bytes(state)))
        while number >= self.next:
            if number > self.next:
                self.go_through(self.next)
            self.advance()
            if number == self.next:
                self.go_through(None)
            if self.generators is not None and self.generators.are_new():
                # It has imported one that was not seeded.
                self.begin(pass_, self.began_at)
        result, _ = self.kept[number]
        if isinstance(result, BaseException):
            raise result
        return result

    def begin(self, pass_, state):
        self.forget()
        self.began_at = state
        self.pass_, self.next, self.is_over = pass_, state.number, False
        self.has_told, self.state_ns = False, 0
        kind, content = state.bytes[:1], state.bytes[1:]
        if self.generators is not None:
            self.generators.seed(self.row.mixed(self.key, self.row.mixed(pass_, 1 << 63)))
        # Each element's is its own: the 64 bits are mixed with the key.
        self.path = self.row.mixed(pass_, 1 << 62)
        self.draw_as(0)
        made = self.make
        if self.takes_position:
            made = made(position=content if kind == b"P" else None)
        elif callable(made):
            made = made()
        if not hasattr(made, "__iter__"):
            raise TypeError(f"{self.name} returned a {type(made).__name__}, not an iterable")
        saved = ast.literal_eval(zlib.decompress(content).decode()) if kind == b"S" else None
        # As torchdata has it, an iterable or its iterator has states.
        if saved is not None and hasattr(made, "load_state_dict"):
            made.load_state_dict(saved)
        self.iterator = iter(made)
        if saved is not None and not hasattr(made, "load_state_dict"):
            self.iterator.load_state_dict(saved)
        self.stateful = next((it for it in (self.iterator, made) if hasattr(it, "state_dict") and hasattr(it, "load_state_dict")), None)

    def draw_as(self, number):
        """The generators' draws are those of this element."""
        path = self.path + number & (1 << 64) - 1
        self.row.path, self.row.is_fresh = path, True
        return path

    def advance(self):
        number = self.next
        self.next += 1
        path = self.draw_as(number)
        # What goes on at a state draws as what came there; others have drawn all that is in front.
        if self.generators is not None and (self.stateful is not None or self.takes_position):
            self.generators.seed(self.row.mixed(self.key, path))
        if self.is_over:
            self.keep(number, (self.nothing, self.next, False, b""), 256)
            return
        position = None
        try:
            element = next(self.iterator)
            if isinstance(element, self.row.At):
                element, position = element.element, element.position
            arrays = self.to_arrays(element)
        except StopIteration:
            self.is_over = True
            self.keep(number, (self.nothing, self.next, False, b""), 256)
            return
        except BaseException as error:
            self.keep(number, error, 256)
            return
        state = b"P" + position if position is not None else self.state()
        size = 256
        for array in arrays:
            size += array.nbytes
        self.keep(number, (arrays, self.next, True, state), size)

    def keep(self, number, result, size):
        self.kept[number] = result, size
        self.kept_bytes += size
        while len(self.kept) > 1 and (len(self.kept) > KEPT_ELEMENTS or self.kept_bytes > KEPT_BYTES):
            _, (_, old) = self.kept.popitem(last=False)
            self.kept_bytes -= old

    def state(self):
        """The iterator's, or nothing."""
        if self.stateful is None:
            return b""
        now = time.monotonic_ns()
        if now - self.state_ns < STATE_NS:
            return b""
        self.state_ns = now
        state = self.stateful.state_dict()
        text = repr(state)
        try:
            is_whole = ast.literal_eval(text) == state
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            is_whole = False
        data = b"S" + zlib.compress(text.encode())
        if is_whole and len(data) <= MAX_STATE_BYTES:
            return data
        if not self.has_told:
            self.has_told = True
            why = f"takes {len(data)} bytes, more than {MAX_STATE_BYTES}" if is_whole else "holds more than dicts, lists, tuples, numbers, texts and bytes"
            told(f"the state of {self.name}'s iterator {why}: a resume gives its elements again from the first one on")
        return b""


def parameters(function):
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}
