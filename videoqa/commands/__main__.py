"""`python -m videoqa.commands`, for launchers that want a module."""

from videoqa.commands import main

main()
