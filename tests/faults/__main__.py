"""`python -m tests.faults`: see lab.py."""

from tests.faults.lab import main

main()
