"""`runsight token <user> --name N`: make an API token, shown once."""

from __future__ import annotations

import argparse
from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError

from workflows_app import services
from workflows_app.models import ApiToken
from workflows_app.security import access


class Command(BaseCommand):
    """Makes one token and prints its key."""

    help = "Make an API token of a user and print it; it cannot be shown again."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("user")
        parser.add_argument("--name", required=True, help="what the token is for, such as ci")
        parser.add_argument(
            "--role", choices=list(access.ROLES), default="", help="limit the token to a role"
        )
        parser.add_argument("--days", type=int, help="days until it expires; never without this")

    def handle(self, *args: Any, **options: Any) -> None:
        user = get_user_model()._default_manager.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']!r}.")
        if ApiToken.objects.filter(user_id=user.pk, name=options["name"]).exists():
            raise CommandError(
                f"{options['user']} has a token named {options['name']!r} already; choose another name."
            )
        days = options["days"]
        lifetime = timedelta(days=days) if days else None
        _, key = services.make_token(
            user, options["name"], role=options["role"], lifetime=lifetime, author=user
        )
        self.stdout.write(key)
