"""Tests against other people's servers run where these are installed: `./dev test remote`."""

import pathlib
import shutil
import sys

_BIN = str(pathlib.Path(sys.executable).parent)
_FOUND = all(shutil.which(name, path=_BIN) for name in ("rclone", "gcp-storage-emulator"))
collect_ignore = [] if _FOUND else ["real_servers_test.py", "deviant_server_test.py"]
