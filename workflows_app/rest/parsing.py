"""Reading bodies: JSON only, of bounded size, and nothing in it that a table could not keep."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser

from workflows_app.rest.faults import TooLarge

# Escapes of NUL, which PostgreSQL refuses, and of surrogates, which are no text unless paired.
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
# Far below what a recursive walk over the value can take.
MOST_LEVELS = 200


class JsonAlways(DefaultContentNegotiation):
    """Answers are JSON whatever a caller accepts: a fault that cannot be read helps nobody."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class StrictJSONParser(JSONParser):
    """JSON as the standard has it: no NaN, no number beyond floats, no half characters."""

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        view = (parser_context or {}).get("view")
        raw = _read(stream, getattr(view, "max_body_bytes", 1024 * 1024))
        try:
            data = json.loads(raw.decode(), parse_constant=_refuse, parse_float=_finite)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"The body is not JSON: {_reason(error)}.") from None
        _check_levels(data)
        if _SUSPECT.search(raw) and not getattr(view, "keeps_any_text", False):
            _check_texts(data)
        return data


def _read(stream: Any, most: int) -> bytes:
    raw: bytes = stream.read(most + 1)
    if len(raw) > most:
        raise TooLarge(f"The body is larger than the {most // 1024} KB this call takes.")
    return raw


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text[:30]} is too large a number")
    return value


def _reason(error: Exception) -> str:
    return "nested too deep" if isinstance(error, RecursionError) else str(error)


def _check_levels(data: Any) -> None:
    level = [data] if isinstance(data, dict | list) else []
    for _ in range(MOST_LEVELS):
        items = (item for one in level for item in (one.values() if isinstance(one, dict) else one))
        level = [item for item in items if isinstance(item, dict | list)]
        if not level:
            return
    raise ParseError(f"The body is nested too deep; {MOST_LEVELS} levels are allowed.")


def _check_texts(data: Any) -> None:
    try:
        text = json.dumps(data, ensure_ascii=False)
        text.encode()
    except (UnicodeEncodeError, RecursionError):
        raise ParseError("The body has half a surrogate pair in a text; send whole characters.") from None
    if "\\u0000" in text:
        raise ParseError("The body has a NUL character in a text; leave it out.")
