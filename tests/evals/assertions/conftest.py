"""How property tests run."""

from hypothesis import settings

# A busy machine is no reason to fail: what must be quick has a test of its own.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")
