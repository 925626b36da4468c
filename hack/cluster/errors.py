"""The one exception whose message is meant for the person at the terminal, printed without a traceback."""


class ClusterError(Exception):
    """Something that the user can act on; the message says what."""
