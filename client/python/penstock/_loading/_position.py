"""How far a loop over a DataLoader has come, and beginning one where a state says."""

from penstock import _errors
from penstock._loading import _state
from penstock._loading._indices import Digest, Generators, Indices

# Indices and batches that are drawn at once, on the way to where a loop goes on.
MOST_INDICES = 1 << 20
MOST_BATCHES = 1 << 16


class Position:
    """How far a loop has come: what a state_dict says.

    Attributes:
      given: batches that the loop has had.
      ended: whether it has had all.
      iterable: of a loop over an iterable in the trainer, a function that returns what _iterables.state_of() does.
      streams: of one by workers, a Streams.

    Args:
      order: of a loader that is one rank's, what tells the order of all ranks: each may go on by the state of any of them. Else None.
    """

    def __init__(self, base_seed, turn, indices, order):
        self.base_seed = base_seed
        self.turn = turn
        self.given = 0
        self.ended = False
        self.asked_worker = False
        self.iterable = None
        self.streams = None
        self._indices = indices
        self._order = order
        self._digest = Digest()
        self._pending = []
        self._pending_rows = 0

    def add(self, rows):
        """Rows that were handed over."""
        self._pending.append(rows)
        self._pending_rows += len(rows)

    def digest(self):
        """What tells the indices that were given from others."""
        if self._order is not None:
            return self._order
        ahead = self._pending_rows - self.given
        while self._pending and self._pending_rows > 0:
            rows = self._pending[0]
            past = min(len(rows), sum(map(len, self._pending)) - ahead)
            if past <= 0:
                break
            self._digest.add(rows[:past])
            if past < len(rows):
                self._pending[0] = rows[past:]
                break
            self._pending.pop(0)
        return self._digest.hex()

    def state(self):
        state = {"batches": self.given, "base_seed": self.base_seed, "turn": self.turn}
        if self.streams is not None:
            return {**state, "streams": self.streams.written(), "next_stream": self.streams.next_stream}
        if self.iterable is not None:
            states = self.iterable()
            return {**state, "iterable": None if states is None else _state.packed(states)}
        return {**state, "digest": self.digest(), "generators": self._indices.states()}


def begin_epoch(iterator, loader, turn):
    """The indices and the position of an epoch that begins, or goes on where a state says; and what was drawn of it ahead."""
    resume = loader._take_resume()
    seed, order = loader._of_ranks()
    if seed is not None:
        iterator._base_seed = seed
    indices = Indices(iterator._sampler_iter, Generators(loader))
    if resume is None:
        return indices, Position(iterator._base_seed, turn, indices, order), []
    iterator._base_seed = resume["base_seed"] if seed is None else seed
    position = Position(iterator._base_seed, resume["turn"], indices, order)
    if "digest" not in resume:
        position.given = resume["batches"]
        return indices, position, []
    with indices.at(resume["generators"]):
        left = resume["batches"]
        while left:
            drawn = indices.draw_until(min(left, MOST_BATCHES), MOST_INDICES)
            if not drawn:
                break
            position.add(indices.rows(drawn, 0, 0))
            left -= len(drawn)
        position.given = resume["batches"] - left
        if left or position.digest() != resume["digest"]:
            raise _errors.FailedPreconditionError(
                f"the sampler gives other indices than before: of the {resume['batches']} batches that were had, "
                + (f"it gives {position.given}" if left else "some have others")
                + ". Dataset, batch_size and sampler are to be those of the state; a sampler that draws by itself draws from a generator that it has as an "
                "attribute, or has a state_dict() of its own"
            )
        # A sampler that has drawn nothing yet is to draw from generators that are as they were.
        return indices, position, indices.draw(1)


class Streams:
    """The workers of a loop over an iterable, by turns.

    Attributes:
      next_stream: whose turn it is.
      begun: of each, where it can go on: the number of batches in front, and what _state.packed() made of its state, or None.
    """

    def __init__(self, given, has_ended, begun, next_stream):
        self.given = given
        self.has_ended = has_ended
        self.begun = begun
        self.next_stream = next_stream

    @classmethod
    def read(cls, written, next_stream):
        return cls([one[0] for one in written], [one[1] for one in written], [tuple(one[2:]) for one in written], next_stream)

    def written(self):
        return [[given, ended, *begun] for given, ended, begun in zip(self.given, self.has_ended, self.begun)]

    def turn(self):
        """Whose turn it is, of those that have not ended; None where all have."""
        for _ in self.given:
            if not self.has_ended[self.next_stream]:
                return self.next_stream
            self.advance()
        return None

    def advance(self):
        self.next_stream = (self.next_stream + 1) % len(self.given)
