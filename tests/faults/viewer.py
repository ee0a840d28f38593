"""Somebody who watches a run through everything: reconnects, and asks for what came after the last event seen."""

import json
import threading
import time

from websockets.exceptions import WebSocketException
from websockets.sync.client import connect


class Viewer:
    """A client in a thread of its own."""

    def __init__(self, port: int, run_id: str, key: str) -> None:
        self.address = f"ws://127.0.0.1:{port}/ws/runs/{run_id}/"
        self.key = key
        self.seqs: list[int] = []
        self.connects = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(10)

    def _watch(self) -> None:
        while not self._stopping.is_set():
            try:
                self._read()
            except (OSError, WebSocketException):
                time.sleep(0.1)

    def _read(self) -> None:
        after = self.seqs[-1] if self.seqs else 0
        headers = {"Authorization": f"Token {self.key}"}
        with connect(f"{self.address}?after={after}", additional_headers=headers, open_timeout=5) as socket:
            self.connects += 1
            while not self._stopping.is_set():
                try:
                    message = json.loads(socket.recv(timeout=0.5))
                except TimeoutError:
                    continue
                if "seq" in message:
                    self.seqs.append(message["seq"])


def token() -> str:
    """The key of somebody who may see runs."""
    from django.contrib.auth.models import Group, User

    from workflows_app import services

    user = User.objects.create_user("viewer")
    user.groups.add(Group.objects.get(name="viewer"))
    return services.make_token(user, "lab")[1]
