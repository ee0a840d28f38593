"""Statements on the path of every block: made once, their values bound without the ORM's detours.

Compiling a query costs the ORM several times what SQLite takes to run it, and a run of 100 blocks makes 800 of them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cache, lru_cache, partial
from types import NoneType
from typing import Any, TypeVar
from uuid import UUID

from django.db import DEFAULT_DB_ALIAS, connection, connections, models

# Few enough for SQLite's limit on parameters, and for the number of statements that are kept.
ROWS_A_STATEMENT = 50

M = TypeVar("M", bound=models.Model)
Bind = Callable[[Any], Any]
Column = tuple[str, Bind]


def execute(statement: str, values: Sequence[Any]) -> Any:
    """Run one of our own statements; the cursor has its rows."""
    database: Any = connections[DEFAULT_DB_ALIAS]
    raw = database.connection
    # Django's cursor where somebody listens or refuses: a log of queries, a transaction that is broken.
    is_plain = not (database.needs_rollback or database.execute_wrappers or database.queries_logged)
    if database.vendor == "sqlite" and raw is not None and is_plain:
        with database.wrap_database_errors:
            return raw.execute(_with_question_marks(statement), values)
    cursor = database.cursor()
    cursor.execute(statement, values)
    return cursor


@lru_cache(maxsize=512)  # a condition may name as many blocks as a workflow has
def _with_question_marks(statement: str) -> str:
    return statement.replace("%s", "?")


def select(model: type[M], where: str, values: Sequence[Any], *, without: tuple[str, ...] = ()) -> list[M]:
    """The rows of a table that a condition of ours finds, as the ORM would give them; `without` defers fields."""
    statement, names, converters = _selection(model, without, connection.vendor)
    found = []
    for row in execute(f"{statement} {where}", values).fetchall():
        cells = list(row)
        for index, expression, convert in converters:
            cells[index] = convert(cells[index], expression, connection)
        found.append(model.from_db(DEFAULT_DB_ALIAS, names, cells))
    return found


def insert(row: models.Model) -> None:
    """Insert a new row; the database gives its key if it has none."""
    statement, columns = _insertion(type(row), 1, connection.vendor)
    key = execute(statement, _values(row, columns)).fetchone()[0]
    if row.pk is None:
        row.pk = key
    _mark_stored(row)


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
        _mark_stored(row)


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
        statement, columns = _insertion(type(some[0]), len(some), connection.vendor)
        values = [value for row in some for value in _values(row, columns)]
        keys.extend(key for (key,) in execute(statement, values).fetchall())
    return keys


def _mark_stored(row: models.Model) -> None:
    row._state.adding = False
    row._state.db = DEFAULT_DB_ALIAS


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
        statement, columns = _change(type(items[0]), tuple(names), None, connection.vendor)
        with connection.cursor() as cursor:
            cursor.executemany(statement, [_values(row, columns) for row in items])


def update(row: models.Model, names: Iterable[str], *, only_if_null: str | None = None) -> bool:
    """Write the named fields of a row; with `only_if_null` just if that field is still null. False if it was not."""
    statement, columns = _change(type(row), tuple(names), only_if_null, connection.vendor)
    return bool(execute(statement, _values(row, columns)).rowcount)


def key_of(row: models.Model) -> Any:
    """The key of a row as statements take it."""
    return binder(row._meta.pk, connection.vendor)(row.pk)


def _values(row: models.Model, columns: Iterable[Column]) -> list[Any]:
    return [bind(getattr(row, name)) for name, bind in columns]


@cache
def binder(field: models.Field[Any, Any], vendor: str) -> Bind:
    """What turns a value of a field into what the driver takes: the ORM's own answer, for the usual types sooner."""
    target = field
    while isinstance(target, models.ForeignKey):
        target = target.target_field
    if isinstance(target, models.JSONField):
        return partial(_bind_json, target.encoder) if vendor == "sqlite" else partial(_bind_other, field)
    usual, shortcut = next((USUAL[kind] for kind in type(target).__mro__ if kind in USUAL), (NoneType, None))
    return partial(_bind_usual, field, usual, shortcut if vendor == "sqlite" else None)


def _bind_usual(
    field: models.Field[Any, Any], usual: type, shortcut: Callable[[Any], str] | None, value: Any
) -> Any:
    if value is None:
        return None
    if isinstance(value, usual):
        return shortcut(value) if shortcut else value
    return _bind_other(field, value)


def _bind_other(field: models.Field[Any, Any], value: Any) -> Any:
    return None if value is None else field.get_db_prep_save(value, connection)


def _bind_json(encoder: type[json.JSONEncoder] | None, value: Any) -> str | None:
    return None if value is None else json.dumps(value, cls=encoder)


# The usual type of a field's values, which drivers take as it is, except where SQLite keeps a text.
USUAL: dict[type, tuple[type, Callable[[Any], str] | None]] = {
    models.CharField: (str, None),
    models.TextField: (str, None),
    models.FloatField: (float, None),
    models.BooleanField: (bool, None),
    models.IntegerField: (int, None),
    models.DateTimeField: (datetime, lambda moment: str(moment.astimezone(UTC).replace(tzinfo=None))),
    models.UUIDField: (UUID, lambda key: key.hex),
}


def _written(value: Any, is_json: bool) -> Any:
    """What COPY sends: psycopg writes every value but JSON by its type, and faster than field by field."""
    return json.dumps(value) if is_json and value is not None else value


@cache
def _selection(
    model: type[models.Model], without: tuple[str, ...], vendor: str
) -> tuple[str, list[str], list[tuple[int, Any, Any]]]:
    fields = [field for field in model._meta.concrete_fields if field.name not in without]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    converters = []
    for index, field in enumerate(fields):
        expression = field.get_col(model._meta.db_table)
        found = connection.ops.get_db_converters(expression) + expression.get_db_converters(connection)
        converters += [(index, expression, convert) for convert in found]
    statement = f'SELECT {columns} FROM "{model._meta.db_table}" WHERE'  # noqa: S608
    return statement, [field.attname for field in fields], converters


@cache
def _insertion(model: type[models.Model], count: int, vendor: str) -> tuple[str, list[Column]]:
    fields = [field for field in model._meta.concrete_fields if not isinstance(field, models.AutoField)]
    names = ", ".join(f'"{field.column}"' for field in fields)
    marks = ", ".join(["(" + ", ".join(["%s"] * len(fields)) + ")"] * count)
    statement = (
        f'INSERT INTO "{model._meta.db_table}" ({names}) VALUES {marks} RETURNING "{model._meta.pk.column}"'  # noqa: S608
    )
    return statement, [(field.attname, binder(field, vendor)) for field in fields]


@cache
def _copying(model: type[models.Model], has_keys: bool) -> tuple[str, list[tuple[str, bool]]]:
    fields = [field for field in model._meta.concrete_fields if not field.primary_key]
    names = ", ".join(f'"{field.column}"' for field in ([model._meta.pk] if has_keys else []) + fields)
    columns = [(field.attname, isinstance(field, models.JSONField)) for field in fields]
    return f'COPY "{model._meta.db_table}" ({names}) FROM STDIN', columns


@cache
def _change(
    model: type[models.Model], names: tuple[str, ...], only_if_null: str | None, vendor: str
) -> tuple[str, list[Column]]:
    fields: list[Any] = [model._meta.get_field(name) for name in names]
    changes = ", ".join(f'"{field.column}" = %s' for field in fields)
    where = f'"{model._meta.pk.column}" = %s' + (f' AND "{only_if_null}" IS NULL' if only_if_null else "")
    statement = f'UPDATE "{model._meta.db_table}" SET {changes} WHERE {where}'  # noqa: S608
    return statement, [(field.attname, binder(field, vendor)) for field in [*fields, model._meta.pk]]
