"""The cases whose figures are rates and processor time; README.md says what each is for."""

import typing

ALL_PEERS = ("loop", "torch", "grain", "tensorflow")


class Case(typing.NamedTuple):
    """A function of an element's number.

    Attributes:
      function: of functions.py, what makes an element.
      batch: rows of a batch.
      peers: beside Penstock; "loop" is the function's results in batches, and nothing else.
      ours: Penstock's side; "drop_in" is its DataLoader over a torch Dataset.
    """

    function: str
    batch: int
    peers: typing.Tuple[str, ...] = ALL_PEERS
    ours: str = "penstock"


RATE_CASES = {
    "small": Case("small", 64),
    "image": Case("image", 64),
    "pillow": Case("pillow", 16),
    "pure": Case("pure", 64),
    "tail": Case("tail", 64),
    "dataloader": Case("pillow", 16, ("loop", "torch"), "drop_in"),
    "dataloader_short": Case("short_image", 64, ("loop", "torch"), "drop_in"),
}
OTHER_CASES = ("trainer", "first_batch", "resume", "closure", "seeds")
# Of all sides: more than any window takes.
ELEMENTS = 1 << 30
