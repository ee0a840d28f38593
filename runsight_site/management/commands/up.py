"""`runsight up`: tables, an administrator, the demo, and the server, in one process."""

import os
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand
from django.db import connections

from runsight_site.environment import is_loopback, web_address
from runsight_site.serving import demo, login_links, server, startup


class Command(BaseCommand):
    """Prepare what is missing, then serve until Ctrl-C."""

    help = "Migrate, make the administrator and load the demo on first start, then serve."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            self._up()
        except KeyboardInterrupt:
            raise SystemExit(130) from None

    def _up(self) -> None:
        port = server.usable_port(settings.HOST, settings.PORT)
        if settings.PORT == 0:
            settings.RUNSIGHT_URL = settings.RUNSIGHT_URL.removesuffix(":0") + f":{port}"
        os.umask(0o077)  # whatever this server writes, a database outside its folder too, is its own
        with startup.start_lock():
            startup.migrate_if_due()
            administrator = startup.ensure_administrator()
        connections.close_all()

        def on_listening() -> None:
            is_loading = demo.start_loading() is not None
            self._say_where_to_go(port, administrator, is_loading=is_loading)

        server.serve(settings.HOST, port, on_listening)
        self.stdout.write("Runsight has stopped.")

    def _say_where_to_go(self, port: int, administrator: startup.Administrator, *, is_loading: bool) -> None:
        lines = [f"Runsight is at {settings.RUNSIGHT_URL}/", ""]
        if administrator.generated_password:
            lines.append(f"  user      {startup.ADMIN_NAME}")
            lines.append(f"  password  {administrator.generated_password}   (shown only this once)")
        elif administrator.is_new:
            lines.append(f"  user      {startup.ADMIN_NAME}")
            lines.append("  password  the one in RUNSIGHT_ADMIN_PASSWORD")
        if administrator.user is None:
            lines.append("  There is no active administrator: make one with `runsight createsuperuser`.")
        elif link := _link(port, administrator):
            start = "or log in" if administrator.is_new else "Log in, or"
            lines.append(f"  {start} with this link, once, within ten minutes, on this machine:\n  {link}")
        if is_loading:
            lines.append("\nThe demo is loading in the background; the pages fill as it goes.")
        lines.append("\nCtrl-C stops the server.")
        self.stdout.write("\n".join(lines))
        self.stdout.flush()


def _link(port: int, administrator: startup.Administrator) -> str:
    """The one-time link; none behind https, where this machine's clients come through a proxy as well."""
    if administrator.user is None or settings.RUNSIGHT_URL.startswith("https://"):
        return ""
    host = settings.HOST if is_loopback(settings.HOST) else "127.0.0.1"
    return web_address(host, port) + login_links.issue(administrator.user)
