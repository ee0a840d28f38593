"""What is done to an output before it is judged: `json_path:<expression>`."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from .base import BadOption
from .documents import NotJson
from .limits import CannotCheck
from .options import describe
from .paths import MISSING, Find, compile_path
from .patterns import shorten
from .subject import Subject

_PREFIX = "json_path:"


class JsonPath:
    """Takes the first match of a path out of an output."""

    __slots__ = ("_find", "expression", "key")

    def __init__(self, expression: str, find: Find) -> None:
        self.expression = expression
        self.key = f"json_path:{expression}"
        self._find = find

    def apply(self, subject: Subject) -> Subject:
        """Return the part to judge: a string as it is, anything else as JSON text."""
        try:
            return subject.part(self.key, self._extract)
        except NotJson as fault:
            raise CannotCheck(
                f"Transform {shorten(self.expression)} needs JSON, but the output is not: {fault}."
            ) from None

    def _extract(self, document: Any) -> str:
        try:
            value = self._find(document)
        except RecursionError:
            raise CannotCheck(f"JSON path {shorten(self.expression)} recurses too deeply.") from None
        if value is MISSING:
            raise CannotCheck(f"JSON path {shorten(self.expression)} matches nothing in the output.")
        if isinstance(value, str):
            return value
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            raise CannotCheck(f"What JSON path {shorten(self.expression)} found has no JSON text.") from None


class Transform:
    """A transform, by name: `json_path:<expression>`."""

    name = "transform"

    def parse(self, raw: Any) -> JsonPath:
        if not isinstance(raw, str):
            raise BadOption(f"must be text such as 'json_path:$.answer', not {describe(raw)}")
        if not raw.startswith(_PREFIX):
            raise BadOption(f"{shorten(raw)} is unknown; the only transform is 'json_path:<expression>'")
        return load_path(raw[len(_PREFIX) :].strip())


@lru_cache(maxsize=2048)
def load_path(expression: str) -> JsonPath:
    """Compile a JSON path, or raise BadOption."""
    return JsonPath(expression, compile_path(expression))
