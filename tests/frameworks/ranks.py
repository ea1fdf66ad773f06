"""Several ranks in processes of their own."""

import multiprocessing


def results_of_ranks(function, *arguments):
    """What function(rank, *arguments, results) puts there in each of two processes, by rank."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    processes = [context.Process(target=function, args=(rank, *arguments, results)) for rank in range(2)]
    for process in processes:
        process.start()
    found = sorted(results.get(timeout=120) for _ in processes)
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    return found
