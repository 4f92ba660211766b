"""A rank's list that tells when the engine has done each of its actions."""


class Watched(list):
    """Calls `look(n)` whenever the engine has done n actions and asks for the next."""

    look = None

    def __iter__(self):
        for i, action in enumerate(super().__iter__()):
            yield action
            if self.look is not None:
                self.look(i + 1)
