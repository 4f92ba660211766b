"""What ends a command with a sentence instead of a traceback."""


class Failure(RuntimeError):
    """A command cannot go on: what happened and the way out, in one sentence; exit status 1.

    (A wrong argument is a ValueError and exit status 2.)
    """
