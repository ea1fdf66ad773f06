"""The same bytes as bench_helper_transport moves, by tf.data service: `tf_data_service.py BYTES STEPS`.

Two processes on this machine: a dispatcher with a worker that repeats one element, and a trainer that takes it by the service's own protocol. Prints a line of JSON.
It needs TensorFlow.
"""

import json
import os
import resource
import subprocess
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ["CUDA_VISIBLE_DEVICES"] = ""


def cpu_seconds():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def serve():
    import tensorflow as tf

    service = tf.data.experimental.service
    dispatcher = service.DispatchServer()
    worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1]))
    print(dispatcher.target, flush=True)
    # At each line it tells what it has used.
    for _ in sys.stdin:
        print(cpu_seconds(), flush=True)
    del worker


def main():
    if sys.argv[1] == "--serve":
        return serve()
    import tensorflow as tf

    size, steps = int(sys.argv[1]), int(sys.argv[2])
    server = subprocess.Popen([sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def used_there():
        print(file=server.stdin, flush=True)
        return float(server.stdout.readline())

    try:
        address = server.stdout.readline().strip()
        service = tf.data.experimental.service
        dataset = tf.data.Dataset.from_tensors(tf.fill([size], tf.constant(7, tf.uint8))).repeat(steps + 8)
        steps_taken = iter(dataset.apply(service.distribute(service.ShardingPolicy.OFF, address)))
        for _ in range(4):
            next(steps_taken)
        here, there, begin = cpu_seconds(), used_there(), time.perf_counter()
        for _ in range(steps):
            next(steps_taken)
        seconds, here, there = time.perf_counter() - begin, cpu_seconds() - here, used_there() - there
    finally:
        server.kill()
        server.wait()
    gib = size * steps / 2**30
    print(json.dumps({"asker_s_per_gib": round(here / gib, 3), "helper_s_per_gib": round(there / gib, 3), "gib_per_s": round(gib / seconds, 2)}), flush=True)
    # What TensorFlow's threads still wait for is of no interest.
    os._exit(0)


if __name__ == "__main__":
    main()
