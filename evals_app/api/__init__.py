"""The endpoints that show what evals_app knows."""
