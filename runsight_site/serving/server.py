"""daphne in this process: find out early whether it can listen, say so when it does, stop on Ctrl-C."""

from __future__ import annotations

import errno
import signal
import socket
from collections.abc import Callable

from runsight_site.environment import BadSetting


def usable_port(host: str, port: int) -> int:
    """The port if it is free (0: one that is), otherwise a sentence that says why not."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)  # two may bind, one may listen
            return int(probe.getsockname()[1])
    except (OSError, UnicodeError) as error:
        raise BadSetting(_why_not(host, port, error)) from None


def _why_not(host: str, port: int, error: Exception) -> str:
    number = getattr(error, "errno", None)
    if number == errno.EADDRINUSE:
        return (
            f"PORT: {port} on {host} is in use, perhaps by a Runsight that is already running; "
            f"stop that, or choose another, for example PORT={port + 1 if port < 65535 else 8000}."
        )
    if number == errno.EACCES:
        return f"PORT: {port} needs more rights than this user has; use one above 1023."
    return f"HOST: {host!r} is not an address of this machine; use 127.0.0.1."


def serve(host: str, port: int, on_listening: Callable[[], None]) -> None:
    """Serve until SIGINT or SIGTERM."""
    from runsight_site.asgi import application
    from runsight_site.serving.backpressure import PacedServer  # daphne installs its event loop when imported
    from runsight_site.serving.bodies import bound_bodies
    from workflows_app import executors
    from twisted.internet import reactor  # isort: skip - the loop just installed

    def started() -> None:
        if not server.listening_addresses:
            raise BadSetting(_why_not(host, port, OSError(errno.EADDRINUSE, "")))
        server.pace_sockets()
        bound_bodies(server)
        # Not before the event loop handles signals: whoever reads that we are up may stop us at once.
        reactor.callWhenRunning(on_listening)

    interface = host.strip("[]").replace(":", r"\:")
    server = PacedServer(
        application, endpoints=[f"tcp:port={port}:interface={interface}"], ready_callable=started, verbosity=0
    )
    # Started in a shell's background SIGINT is ignored, and the event loop would leave it so.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        server.run()
    finally:
        executors.stop()
    if not server.listening_addresses:
        started()
