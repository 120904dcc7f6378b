"""Strategies that draw cases, for `hypothesis.given`.

Example:
    >>> from hypothesis import given, settings
    >>> import gradcheck_plus as gp
    >>> from gradcheck_plus import strategies as gst
    >>> @settings(max_examples=5, database=None, deadline=None)
    ... @given(case=gst.cases(max_statements=2))
    ... def test_a_plain_call_changes_nothing(case):
    ...     gp.assert_same_gradients(case, gp.subjects.checkpoint(lambda f, *args, **kwargs: f(*args, **kwargs)))
    >>> test_a_plain_call_changes_nothing()
"""

if __name__ == "strategies":
    raise ImportError("'strategies' is the source directory of gradcheck_plus.strategies; import it under that name.")

from gradcheck_plus.strategies.calls import calls
from gradcheck_plus.strategies.cases import cases
from gradcheck_plus.strategies.swarms import swarms

__all__ = ["calls", "cases", "swarms"]
