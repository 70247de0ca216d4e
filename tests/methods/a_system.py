"""A system of the user's, for tests of ``external``."""


def answer(question):
    """The question in capitals."""
    return question.upper()
