"""The one exception for what a user can put right."""


class UserError(Exception):
    """A mistake in config, data or surroundings, told in one sentence.

    The message says what is wrong, where (file and key), and what to do. The command line prints it
    without a traceback and exits with status 2.
    """
