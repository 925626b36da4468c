"""The one exception whose message is meant for the person at the terminal, printed without a traceback."""


class BenchError(Exception):
    """Something that ends a benchmark; the message says what, and what to do about it."""
