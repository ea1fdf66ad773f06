"""Our side: a Python trainer that takes the batches of a running daemon."""

import argparse

import penstock

import window


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", required=True)
    parser.add_argument("--pipeline", required=True)
    parser.add_argument("--daemon-pid", type=int, required=True)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--read", action="store_true", help="sum every byte")
    arguments = parser.parse_args()

    batches = (tuple(batch.values()) for batch in penstock.attach(arguments.pipeline, socket=arguments.socket))
    window.measure(batches, window.sum_bytes if arguments.read else window.touch_ends, arguments.seconds,
                   lambda: window.own_cpu_seconds() + window.process_cpu_seconds(arguments.daemon_pid))


if __name__ == "__main__":
    main()
