"""Writes on the path of every block: the ORM's values, with the statement made once.

Compiling a query costs the ORM several times what SQLite takes to run it; a run of 100 blocks makes 800 of them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from django.db import connection, models

# Few enough for SQLite's limit on parameters, and for the number of statements that are kept.
ROWS_A_STATEMENT = 50
# Values that a field would hand to the database as they are.
PLAIN: dict[type, type] = {
    models.CharField: str,
    models.TextField: str,
    models.FloatField: float,
    models.BooleanField: bool,
    models.PositiveIntegerField: int,
    models.PositiveSmallIntegerField: int,
    models.PositiveBigIntegerField: int,
}


def insert(row: models.Model) -> None:
    """Insert a new row whose key the database gives."""
    statement, fields = _insertion(type(row))
    with connection.cursor() as cursor:
        cursor.execute(statement, [_value(row, field) for field in fields])
        row.pk = cursor.fetchone()[0]
    row._state.adding = False
    row._state.db = connection.alias


def insert_many(items: Sequence[models.Model]) -> None:
    """Insert new rows of one table at once; the database gives their keys, in the order given."""
    if not items:
        return
    if connection.vendor == "postgresql":
        keys = _next_keys(type(items[0]), len(items))
        _copy(items, keys)
    else:
        keys = _insert_some(items)
    for row, key in zip(items, keys, strict=True):
        row.pk = key
        row._state.adding = False
        row._state.db = connection.alias


def add_many(items: Sequence[models.Model]) -> None:
    """Insert new rows of one table at once whose keys nobody asks for."""
    if items and connection.vendor == "postgresql":
        _copy(items, None)
    else:
        _insert_some(items)


def _insert_some(items: Sequence[models.Model]) -> list[int]:
    keys: list[int] = []
    for start in range(0, len(items), ROWS_A_STATEMENT):
        some = items[start : start + ROWS_A_STATEMENT]
        statement, fields = _insertion(type(some[0]), len(some))
        with connection.cursor() as cursor:
            cursor.execute(statement, [_value(row, field) for row in some for field in fields])
            keys.extend(key for (key,) in cursor.fetchall())
    return keys


def _next_keys(model: type[models.Model], count: int) -> list[int]:
    statement = "SELECT nextval(pg_get_serial_sequence(%s, %s)) FROM generate_series(1, %s)"
    with connection.cursor() as cursor:
        cursor.execute(statement, [model._meta.db_table, model._meta.pk.column, count])
        return [key for (key,) in cursor.fetchall()]


def _copy(items: Sequence[models.Model], keys: list[int] | None) -> None:
    """PostgreSQL's own way for many rows: half the work of a long INSERT, which psycopg would read anew each time."""
    statement, columns = _copying(type(items[0]), keys is not None)
    with connection.cursor() as cursor, connection.wrap_database_errors, cursor.copy(statement) as copy:
        for index, row in enumerate(items):
            values = [_written(getattr(row, name), is_json) for name, is_json in columns]
            copy.write_row([keys[index], *values] if keys else values)


def update_many(items: Sequence[models.Model], names: Iterable[str]) -> None:
    """Write the named fields of rows of one table; on PostgreSQL the statements travel together."""
    if items:
        statement, fields = _change(type(items[0]), tuple(names), None)
        with connection.cursor() as cursor:
            cursor.executemany(
                statement, [[*(_value(row, field) for field in fields), row.pk] for row in items]
            )


def update(row: models.Model, names: Iterable[str], *, only_if_null: str | None = None) -> bool:
    """Write the named fields of a row; with `only_if_null` just if that field is still null. False if it was not."""
    statement, fields = _change(type(row), tuple(names), only_if_null)
    with connection.cursor() as cursor:
        cursor.execute(statement, [*(_value(row, field) for field in fields), row.pk])
        return bool(cursor.rowcount)


def _value(row: models.Model, field: models.Field[Any, Any]) -> Any:
    value = getattr(row, field.attname)
    if value is None or isinstance(value, PLAIN.get(type(field), ())):
        return value
    return field.get_db_prep_save(value, connection)


def _written(value: Any, is_json: bool) -> Any:
    """What COPY sends: psycopg writes every value but JSON by its type, and faster than field by field."""
    return json.dumps(value) if is_json and value is not None else value


@cache
def _insertion(model: type[models.Model], count: int = 1) -> tuple[str, list[models.Field[Any, Any]]]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    names = ", ".join(f'"{field.column}"' for field in fields)
    marks = ", ".join(["(" + ", ".join(["%s"] * len(fields)) + ")"] * count)
    key = model._meta.pk.column
    return f'INSERT INTO "{model._meta.db_table}" ({names}) VALUES {marks} RETURNING "{key}"', fields  # noqa: S608


@cache
def _copying(model: type[models.Model], has_keys: bool) -> tuple[str, list[tuple[str, bool]]]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    names = ", ".join(f'"{field.column}"' for field in ([model._meta.pk] if has_keys else []) + fields)
    columns = [(field.attname, isinstance(field, models.JSONField)) for field in fields]
    return f'COPY "{model._meta.db_table}" ({names}) FROM STDIN', columns


@cache
def _change(
    model: type[models.Model], names: tuple[str, ...], only_if_null: str | None
) -> tuple[str, list[models.Field[Any, Any]]]:
    fields = [model._meta.get_field(name) for name in names]
    changes = ", ".join(f'"{field.column}" = %s' for field in fields)  # type: ignore[union-attr]
    where = f'"{model._meta.pk.column}" = %s' + (f' AND "{only_if_null}" IS NULL' if only_if_null else "")
    return f'UPDATE "{model._meta.db_table}" SET {changes} WHERE {where}', fields  # type: ignore[return-value]  # noqa: S608
