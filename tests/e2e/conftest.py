"""The fixtures of these tests; what makes them is in programs.py and strangers.py, which tests import from."""

from programs import counter, daemon, penstock_command, remote  # noqa: F401
from strangers import place, serve  # noqa: F401
