"""The call of a function of the user's, once for all elements."""

from penstock import _errors
from penstock._tracing import _draws
from penstock._tracing._foreign import foreign_error, refuse_objects
from penstock._tracing._trace import calls


def result_of(function, element):
    """What the user's function returns for stand-ins, of which it gets the parts if they are a tuple. It is called once for all elements: draws
    are warned of, and other packages' objects and errors become TraceErrors."""
    refuse_objects(function)
    states = _draws.states(function)
    calls.depth = getattr(calls, "depth", 0) + 1
    try:
        result = function(*element) if isinstance(element, tuple) else function(element)
    except _errors.Error:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        if (traced := foreign_error(error)) is None:
            raise
        raise traced from error
    finally:
        calls.depth -= 1
    _draws.warn_of_draws(states, function)
    return result
