"""A function that harms its worker process at some elements. It travels to worker processes by this module's name."""

import ctypes
import os
import random
import resource
import time

import numpy as np
import numpy.random  # noqa: F401 - or its import counts as the time of the first row that draws

import penstock

# What a worker may map beyond what it has at its first row.
MEMORY_BYTES = 128 << 20


def crash():
    ctypes.string_at(0)


def hang():
    time.sleep(1000)


def leave():
    os._exit(3)


def fill():
    """10 GB, step by step."""
    kept = []
    while len(kept) < 1000:
        kept.append(np.ones(10_000_000, np.uint8))


def limit_memory():
    with open("/proc/self/statm") as file:
        mapped = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (mapped + MEMORY_BYTES, resource.RLIM_INFINITY))


HARMS = {"segfault": crash, "hang": hang, "exit": leave, "memory": fill}


class Poisoned:
    def __init__(self, poison):
        self.poison = poison  # a dict from elements to what they do
        self.is_limited = False

    def __call__(self, x):
        if not self.is_limited:
            self.is_limited = True
            limit_memory()
        kind = self.poison.get(int(x))
        if kind is not None:
            HARMS[kind]()
        return np.array([x, penstock.rng().random(), random.random()])
