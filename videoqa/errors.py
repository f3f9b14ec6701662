"""The error type for what a user can mend: a wrong argument, file, row or server.

The command line prints it as one line and ends with exit code 2. Everything else is a fault of the program and keeps
its traceback.
"""


class UserError(ValueError):
    """One line for people: what came, what is allowed, and where (file, line, clip, row)."""
