"""A process that has imported a trainer's packages, and is forked for each run of it: `python forks.py KIND`.

Of the lines that it reads, "FOLDER STEPS" starts a run, whose process it answers with; when that has ended, it writes its status. So a run that is killed
and begun again costs no imports. It has no thread and has computed nothing when it forks.
"""

import importlib
import os
import sys
import traceback

PACKAGES = {
    "transformers": ["transformers", "accelerate", "penstock.huggingface"],
    "accelerate": ["accelerate"],
    "lightning": ["lightning"],
    "keras": ["keras"],
    "checkpoint": ["torch.distributed.checkpoint"],
}


def main():
    kind = sys.argv[1]
    os.environ["KERAS_BACKEND"] = "torch"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    import kinds

    import penstock

    for package in PACKAGES[kind]:
        importlib.import_module(package)
    # Holds the daemon that the runs share, and with it its worker processes.
    penstock.shared_daemon(os.environ["TRAINERS_JOB"])
    print("ready", flush=True)
    for line in sys.stdin:
        folder, steps = line.split()
        process = os.fork()
        if process == 0:
            # Trainers write to their standard output.
            os.dup2(2, 1)
            try:
                kinds.train(kind, folder, int(steps))
            except BaseException:
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        print(process, flush=True)
        _, status = os.waitpid(process, 0)
        print(status, flush=True)


if __name__ == "__main__":
    main()
