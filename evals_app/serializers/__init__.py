"""How what evals_app knows looks in the API."""
