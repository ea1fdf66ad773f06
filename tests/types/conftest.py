"""These tests run where the checkers are: `./dev test types` makes that environment. Elsewhere nothing here is collected."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("mypy") else ["test_checkers.py"]
