"""The endpoints that need no evaluation data."""
