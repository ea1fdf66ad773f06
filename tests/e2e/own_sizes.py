"""What a consumer with a batch size of its own is to see of a pipeline's batches."""


def own_batches(steps, full, size, first_step=0):
    """(number, rows) of each batch of `size` rows over `steps`, lists of rows of which `full` are a whole batch.

    Whole ones are joined; a short one ends a batch, and the next begins one. Batches are counted as if all were whole.
    """
    found, rows = [], []
    number = -(-first_step * full // size)
    for step, more in enumerate(steps, first_step):
        for row in more:
            rows.append(row)
            if len(rows) == size:
                found.append((number, rows))
                number, rows = number + 1, []
        if len(more) < full:
            if rows:
                found.append((number, rows))
                number, rows = number + 1, []
            number = max(number, -(-(step + 1) * full // size))
    return [*found, (number, rows)] if rows else found
