"""When the demo is loaded, and how far that is; what the demo is belongs to `evals_app`."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.db import connections

logger = logging.getLogger("runsight.demo")

# load_demo() loads it, continuing where a killed process stopped; is_needed() says whether that is due;
# landing_path() is the page to show first, or None.
DEMO_MODULE = "evals_app.demo"
NOT_NEEDED, LOADING, READY = "not needed", "loading", "ready"

_state = NOT_NEEDED


def state() -> str:
    """`not needed`, `loading`, `ready` or `failed: <reason>`, for this process."""
    return _state


def landing_path() -> str:
    """Where a first log-in lands: the demo's page once it is there, else the dashboard."""
    find = _from_demo("landing_path")
    return (find() if find and _state != LOADING else None) or "/"


def start_loading() -> threading.Thread | None:
    """Load the demo in the background if an empty database is due one."""
    global _state
    load, is_needed = _from_demo("load_demo"), _from_demo("is_needed")
    if not settings.RUNSIGHT_DEMO or load is None or is_needed is None or not is_needed():
        return None
    _state = LOADING
    thread = threading.Thread(target=_load, args=(load,), name="demo", daemon=True)
    thread.start()
    return thread


def _load(load: Callable[[], object]) -> None:
    global _state
    try:
        load()
    except Exception as error:
        logger.exception("the demo could not be loaded")
        _state = f"failed: {type(error).__name__}: {error}"
    else:
        _state = READY
    finally:
        connections.close_all()


def _from_demo(name: str) -> Callable[[], Any] | None:
    if find_spec(DEMO_MODULE) is None:
        return None
    found: Callable[[], Any] = getattr(import_module(DEMO_MODULE), name)
    return found
