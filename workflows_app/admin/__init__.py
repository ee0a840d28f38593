"""The admin of workflows, souls, providers, runs, tokens and people. Each module registers its own."""

from workflows_app.admin import audit, people, providers, runs, souls, tokens, workflows

__all__ = ["audit", "people", "providers", "runs", "souls", "tokens", "workflows"]
