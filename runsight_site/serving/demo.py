"""When the demo is loaded, and how far that is; what the demo is belongs to `evals_app`."""

from __future__ import annotations

import logging
import threading

from django.conf import settings
from django.db import connections

from evals_app import demo as content

logger = logging.getLogger("runsight.demo")

NOT_NEEDED, LOADING, READY = "not needed", "loading", "ready"

_state = NOT_NEEDED


def state() -> str:
    """`not needed`, `loading`, `ready` or `failed: <reason>`, for this process."""
    return _state


def landing_path() -> str:
    """Where a first log-in lands: the demo's page once it is there, else the dashboard."""
    return "/" if _state == LOADING else content.landing_path() or "/"


def start_loading() -> threading.Thread | None:
    """Load the demo in the background if an empty database is due one."""
    global _state
    is_needed = settings.RUNSIGHT_DEMO and content.is_needed()
    _state = LOADING if is_needed else NOT_NEEDED
    if not is_needed:
        return None
    thread = threading.Thread(target=_load, name="demo", daemon=True)
    thread.start()
    return thread


def _load() -> None:
    global _state
    try:
        content.load_demo()
    except Exception as error:
        logger.exception("the demo could not be loaded")
        _state = f"failed: {type(error).__name__}: {error}"
    else:
        _state = READY
    finally:
        connections.close_all()
