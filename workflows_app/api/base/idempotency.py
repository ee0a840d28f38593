"""A repeated call acts once: `Idempotency-Key`, per user and path, kept for a day."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any, cast

from django.db import IntegrityError, transaction
from django.utils import timezone
from rest_framework.request import Request

from workflows_app.api.base.errors import Invalid, KeyReused
from workflows_app.models import IdempotencyKey, Run

HEADER = "Idempotency-Key"
LONGEST_KEY = 200


def once(
    request: Request, make: Callable[[], Run], prepare: Callable[[], Any] = lambda: None
) -> tuple[Run, bool]:
    """The run that `make` made, and whether it was now; the key is written in the run's own transaction.

    `prepare` comes before that transaction, unless the call is a repeat, so that no lock is held while it works.
    """
    key = request.headers.get(HEADER)
    if key is None:
        prepare()
        return make(), True
    if not 1 <= len(key) <= LONGEST_KEY or not key.isprintable():
        raise Invalid(f"{HEADER}: use 1 to {LONGEST_KEY} printable characters.")
    body = json.dumps(request.data, sort_keys=True).encode()
    row = IdempotencyKey(
        user_id=cast("int", request.user.pk),
        path=request.path[:300],
        key=key,
        body_sha256=hashlib.sha256(body).hexdigest(),
    )
    earlier = _earlier(row)
    if earlier is not None:
        return earlier, False
    prepare()
    try:
        with transaction.atomic():
            row.run = make()
            row.save(force_insert=True)
    except IntegrityError:
        earlier = _earlier(row)  # the same call came twice at the same moment, and the other was first
        if earlier is None:
            raise
        return earlier, False
    return row.run, True


def _earlier(row: IdempotencyKey) -> Run | None:
    same = IdempotencyKey.objects.filter(user_id=row.user_id, path=row.path, key=row.key)
    same.filter(created_at__lt=timezone.now() - IdempotencyKey.KEPT_FOR).delete()
    known = same.select_related("run__workflow", "run__version").first()
    if known is None:
        return None
    if known.body_sha256 != row.body_sha256:
        raise KeyReused(f"{HEADER} {row.key[:50]!r} came before with another body; use a new key.")
    return known.run
