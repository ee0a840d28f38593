"""The API of evaluations and monitoring."""
