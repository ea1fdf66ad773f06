"""Small tables for notebooks."""


def _escaped(value):
    import html

    return html.escape(str(value))


def table(head, rows):
    """A table of texts: a row for each of `rows`, which are as long as `head`."""
    cells = "".join(f"<th>{_escaped(name)}</th>" for name in head)
    lines = "".join("<tr>" + "".join(f"<td>{_escaped(value)}</td>" for value in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{cells}</tr></thead><tbody>{lines}</tbody></table>"


def error(problem):
    """An exception's kind and words."""
    return f"<pre>{_escaped(type(problem).__name__)}: {_escaped(problem)}</pre>"


def of_spec(name, spec):
    """A row of a table of tensors, of a TensorSpec."""
    kind = "" if spec.kind in ("dense", "string") else f"{spec.kind} "
    return name, f"{kind}{getattr(spec.dtype, 'name', spec.dtype)}", spec.shape
