"""The one exception whose message is meant for the person at the terminal, printed without a traceback."""


class ChaosError(Exception):
    """The attack could not be carried out, which says nothing of what was attacked."""
