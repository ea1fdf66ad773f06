"""A daemon of a benchmark's own, and how figures are told."""

import json
import os
import pathlib
import subprocess


def tell(case, **figures):
    print(json.dumps({"case": case, **figures}), flush=True)


class Daemon:
    def __init__(self, folder):
        programs = pathlib.Path(os.environ["PENSTOCK_BIN"])
        self.penstock = programs / "penstock"
        self.socket = str(folder / "s")
        ready, ready_end = os.pipe()
        self.process = subprocess.Popen(
            [programs / "penstockd", "--socket", self.socket, "--state-dir", "none", "--ready-fd", str(ready_end)], pass_fds=[ready_end])
        os.close(ready_end)
        if os.read(ready, 1) != b"\n":
            raise SystemExit("penstockd did not start")
        self.folder = folder

    def create(self, name, text):
        spec = self.folder / f"{name}.textproto"
        spec.write_text(text)
        done = subprocess.run([self.penstock, "--socket", self.socket, "create", spec], capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip())

    def update(self, name, *options):
        subprocess.run([self.penstock, "--socket", self.socket, "update", name, *options], check=True, capture_output=True)

    def delete(self, name):
        subprocess.run([self.penstock, "--socket", self.socket, "delete", name], check=True, capture_output=True)

    def stop(self):
        self.process.terminate()
        self.process.wait()
