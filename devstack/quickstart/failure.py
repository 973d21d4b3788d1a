"""The one way in which the quickstart gives up."""


class Failure(Exception):
    """Something did not happen or is not as it must be; the message says what, and what was found instead."""
