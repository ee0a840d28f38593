"""How long a test waits before it believes that something does not happen."""

# A test tells "at once" from "never"; how long it takes on a quiet machine is for benchmarks/ to say.
PROMPTLY = 5.0
