"""Tests against other people's servers run where these are installed: `./dev test remote`."""

import pathlib
import shutil
import sys

_BIN = str(pathlib.Path(sys.executable).parent)
collect_ignore = [] if all(shutil.which(name, path=_BIN) for name in ("rclone", "gcp-storage-emulator")) else ["real_servers_test.py"]
