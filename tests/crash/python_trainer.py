"""A trainer of the Python crash loop: iterates over a dataset, and writes down what it took, with a checkpoint behind each step.

    python_trainer.py JOB PIPELINE FOLDER NAME OPTIONS

Its daemon is the process' private one, or that of JOB where that is not empty. FOLDER/NAME.log has a line for each step: step, whether it was redelivered, a
digest of its bytes. FOLDER/NAME.cursor is the checkpoint. A trainer that is killed is started again with the same words, and goes on behind its checkpoint; so
does its iteration where that ends with UnavailableError. It ends in front of the step that FOLDER/NAME.stop names.
"""

import hashlib
import json
import os
import sys
import time

import numpy as np
import python_pipelines

import penstock


def parts_of(element):
    if isinstance(element, dict):
        return [element[name] for name in sorted(element)]
    return element if isinstance(element, tuple) else [element]


def digest_of(element):
    """64 bits of an element's types, shapes and bytes."""
    whole = hashlib.blake2b(digest_size=8)
    for part in parts_of(element):
        array = np.asarray(part)
        whole.update(f"{array.dtype} {array.shape} ".encode())
        whole.update(repr(array.tolist()).encode() if array.dtype == object else array.tobytes())
    return int.from_bytes(whole.digest(), "little")


def begin(job, pipeline, options, checkpoint):
    """An iterator behind the checkpoint, or at the beginning."""
    deadline = time.monotonic() + 300
    while True:
        try:
            # One of its own each time, so that each iterator is of a first pass.
            dataset = python_pipelines.make(pipeline, **options)
            iterator = dataset.loader(socket=penstock.shared_daemon(job)) if job else iter(dataset)
            if os.path.exists(checkpoint):
                with open(checkpoint) as file:
                    iterator.load_state_dict(json.load(file))
            return iterator
        except penstock.UnavailableError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def main():
    job, pipeline, folder, name, options = sys.argv[1:]
    options = json.loads(options)
    stop = os.path.join(folder, name + ".stop")
    checkpoint = os.path.join(folder, name + ".cursor")
    log = open(os.path.join(folder, name + ".log"), "a", buffering=1)
    # A kill may have left half a line.
    log.write("\n")
    iterator = begin(job, pipeline, options, checkpoint)
    while True:
        try:
            element = next(iterator)
        except penstock.UnavailableError as error:
            print(f"resumed from the checkpoint: {error}", file=sys.stderr, flush=True)
            log.write("\n")
            iterator = begin(job, pipeline, options, checkpoint)
            continue
        log.write(f"{iterator.step} {int(iterator.redelivered)} {digest_of(element)}\n")
        with open(checkpoint + ".new", "w") as file:
            json.dump(iterator.state_dict(), file, default=bytes.hex)
        os.replace(checkpoint + ".new", checkpoint)
        if os.path.exists(stop):
            with open(stop) as file:
                if iterator.step + 1 >= int(file.read()):
                    break


main()
