"""Hostile input: a few seconds in every test run, as long as you like with RUNSIGHT_FUZZ_EXAMPLES=5000."""
