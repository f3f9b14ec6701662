"""The error that people can mend."""

from __future__ import annotations


class BuildError(Exception):
    """The input, or the place for the output, cannot be used. The message is one line: which file, where, and why."""
