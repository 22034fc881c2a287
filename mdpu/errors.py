"""The one exception for mistakes that a user can correct."""


class UserError(ValueError):
    """A mistake in the configuration, the data or the environment, described in one sentence.

    It is a `ValueError`, which is what scikit-learn's users catch.

    The message says what is wrong, where (file and key), and what to do. The command line prints it
    without a traceback and exits with status 2.
    """
