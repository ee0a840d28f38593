"""The two kinds of statement that the ORM cannot write: COPY, and an UPDATE that returns what it wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, models


def insert_many(rows: Sequence[models.Model], *, needs_keys: bool = True) -> None:
    """Insert new rows of one table; without `needs_keys`, PostgreSQL is not asked for their primary keys.

    COPY of 300 events into PostgreSQL takes 4.8 ms (5.5 with keys) where `bulk_create` takes 9.8; at 30 it is 0.7
    against 1.4. Ingest writes hundreds of rows a run, and every run's observations while others wait for the lock.
    """
    if not rows:
        return
    model = type(rows[0])
    if connection.vendor != "postgresql":
        model._default_manager.bulk_create(rows)
        return
    fields = [field for field in model._meta.concrete_fields if needs_keys or not field.primary_key]
    if needs_keys:
        for row, key in zip(rows, _next_keys(model, len(rows)), strict=True):
            row.pk = key
    columns = ", ".join(f'"{field.column}"' for field in fields)
    statement = f'COPY "{model._meta.db_table}" ({columns}) FROM STDIN'
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        for row in rows:
            copy.write_row([_copied_value(field, getattr(row, field.attname)) for field in fields])
    for row in rows:
        row._state.adding = False
        row._state.db = connection.alias


def _next_keys(model: type[models.Model], count: int) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)",
            [model._meta.db_table, model._meta.pk.column, count],
        )
        return [key for (key,) in cursor.fetchall()]


def _copied_value(field: models.Field[Any, Any], value: Any) -> Any:
    """psycopg converts every value by its type, except JSON."""
    return json.dumps(value) if value is not None and isinstance(field, models.JSONField) else value


def update_returning(
    row: models.Model,
    returning: Sequence[str],
    *,
    add: Mapping[str, float],
    change: Mapping[str, Any] | None = None,
    only_if: Mapping[str, Any] | None = None,
) -> tuple[Any, ...] | None:
    """Add to fields of a row and change others; return fields of it as they are now, or None if `only_if` is not so.

    Only for fields whose columns have the same name. It takes 0.02 ms on SQLite, where `update()` and then reading the
    row take 0.30, and one round trip to PostgreSQL instead of two. A block makes three, each with its run locked.
    """
    change = change or {}
    conditions = {row._meta.pk.name: row.pk, **(only_if or {})}
    assignments = [f'"{name}" = COALESCE("{name}", 0) + %s' for name in add]
    assignments += [f'"{name}" = %s' for name in change]
    where = " AND ".join(f'"{name}" = %s' for name in conditions)
    # The names are the model's own, and every value is a parameter.
    statement = (
        f'UPDATE "{row._meta.db_table}" SET {", ".join(assignments)} WHERE {where} '  # noqa: S608
        f"RETURNING {', '.join(returning)}"
    )
    values: list[Any] = list(add.values())
    for name, value in (*change.items(), *conditions.items()):
        field: Any = row._meta.get_field(name)
        values.append(field.get_db_prep_save(value, connection))
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        found: tuple[Any, ...] | None = cursor.fetchone()
    return found
