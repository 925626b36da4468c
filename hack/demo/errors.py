"""The one exception whose message is meant for the person at the terminal, printed without a traceback."""


class DemoError(Exception):
    """Something that ends the demo; the message says what, and where to look."""
