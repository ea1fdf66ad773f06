"""Starts one side of one case in the Python that it needs, and reads its line of JSON."""

import json
import os
import pathlib
import subprocess

TAKE = pathlib.Path(__file__).parent / "take.py"
NAMES = {"loop": "plain loop", "torch": "torch DataLoader", "torchdata": "torchdata StatefulDataLoader", "grain": "Grain", "tensorflow": "tf.data numpy_function"}


class Sides:
    """Threads: one. Each take() is processes of its own, so that no side warms another's."""

    def __init__(self, pythons, seconds):
        """`pythons` holds the interpreters "torch" (Penstock and the loop run there too), "grain" and "tensorflow"."""
        self._pythons = pythons
        self._seconds = seconds
        self._environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": "-1"}
        self._compile_package()
        self._environment["PENSTOCK_BENCH_STEPS"] = self._measured_steps()

    def _measured_steps(self):
        """As functions.py reads them, for all sides."""
        command = [self._pythons["torch"], "-c", "import functions; print(*functions.measured_steps(), sep=',')"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=self._environment, cwd=TAKE.parent)
        return done.stdout.strip()

    def _compile_package(self):
        """As an installation has it: in a build folder each worker process would compile what it imports."""
        code = "import compileall, importlib.util as util; compileall.compile_dir(util.find_spec('penstock').submodule_search_locations[0], quiet=2)"
        subprocess.run([self._pythons["torch"], "-c", code], check=True, env=self._environment)

    def take(self, side, *options):
        """One run of a side. Raises RuntimeError with what it has said, where it fails."""
        return self._result(self._start(side, options))

    def loops(self, count, *options):
        """So many loops at once: their rates together, and the mean of their costs."""
        started = [self._start("loop", ("--worker", worker, "--workers", count, *options)) for worker in range(count)]
        results = [self._result(process) for process in started]
        rate = sum(result["examples_per_s"] for result in results)
        return {"examples_per_s": rate, "cpu_s_per_million": sum(result["cpu_s_per_million"] for result in results) / count}

    def import_seconds(self, module):
        """How long the import of a module takes that torch's Python has."""
        code = f"import numpy, time; begin = time.perf_counter(); import {module}; print(time.perf_counter() - begin)"
        command = [self._pythons["torch"], "-c", code]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=self._environment, timeout=120)
        return float(done.stdout)

    def _start(self, side, options):
        command = [self._pythons.get(side, self._pythons["torch"]), TAKE, "--side", side, "--seconds", self._seconds, *options]
        return subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self._environment)

    def _result(self, process):
        try:
            out, said = process.communicate(timeout=120 + 20 * self._seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise RuntimeError(f"{' '.join(process.args)}: no end") from None
        if process.returncode != 0:
            raise RuntimeError(f"{' '.join(process.args)}: exit code {process.returncode}\n{said[-2000:]}")
        return json.loads(out.strip().splitlines()[-1])
