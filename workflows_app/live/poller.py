"""Looks at the rows for what the channel layer did not bring: events of other processes, lost messages."""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog
from channels.layers import InMemoryChannelLayer, get_channel_layer
from django.db import connection

from workflows_app.log_throttle import LogThrottle

log = structlog.get_logger("runsight.live")

# Without Redis the rows are the only news of other processes; with it they are the safety net.
SQLITE_SECONDS = 0.25
WITHOUT_LAYER_SECONDS = 1.0
WITH_LAYER_SECONDS = 5.0


class RowWatch(threading.Thread):
    """One thread per process with sockets, with a database connection of its own."""

    def __init__(self, look: Callable[[], None]) -> None:
        super().__init__(name="row-watch", daemon=True)
        self._look = look
        self._stopping = threading.Event()
        self._is_shared = not isinstance(get_channel_layer(), InMemoryChannelLayer)
        self._version: int | None = None
        self._throttle = LogThrottle()

    def stop(self) -> None:
        """Ask the thread to end; it does within one pause."""
        self._stopping.set()

    def run(self) -> None:
        while not self._stopping.is_set():
            try:
                if self.may_have_changed():
                    self._look()
                if connection.vendor != "sqlite":
                    connection.close()  # back into the pool
            except Exception as error:  # noqa: BLE001 - a database away for a while must not end the watch
                self._throttle.warning(log, "could not look for new events", error)
                self._version = None
                connection.close()
            alone = SQLITE_SECONDS if connection.vendor == "sqlite" else WITHOUT_LAYER_SECONDS
            self._stopping.wait(WITH_LAYER_SECONDS if self._is_shared else alone)
        connection.close()

    def may_have_changed(self) -> bool:
        """SQLite counts the commits of other connections, which costs microseconds to ask."""
        if connection.vendor != "sqlite":
            return True
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA data_version")
            version = int(cursor.fetchone()[0])
        is_new, self._version = version != self._version, version
        return is_new
