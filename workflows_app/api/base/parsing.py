"""Reading bodies: JSON only, of bounded size, and nothing in it that a table could not keep."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ParseError
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.parsers import JSONParser

from workflows_app.engine.json_text import strict_json

# Escapes of NUL, which PostgreSQL refuses, and of surrogates, which are no text unless paired.
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")


class JsonAlways(DefaultContentNegotiation):
    """Answers are JSON whatever a caller accepts: an error that cannot be read helps nobody."""

    def select_renderer(self, request: Any, renderers: Any, format_suffix: str | None = None) -> Any:
        return renderers[0], renderers[0].media_type


class StrictJSONParser(JSONParser):
    """JSON as the standard has it: no NaN, no number beyond floats, no half characters."""

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        view = (parser_context or {}).get("view")
        most = getattr(view, "max_body_bytes", 1024 * 1024)
        raw: bytes = stream.read(most + 1)
        if len(raw) > most:
            raise RequestDataTooBig(f"The body is larger than the {most // 1024} KB this call takes.")
        try:
            data = strict_json(raw.decode())
        except ValueError as error:
            raise ParseError(f"The body is not JSON: {error}.") from None
        if _SUSPECT.search(raw) and not getattr(view, "keeps_any_text", False):
            _check_texts(data)
        return data


def _check_texts(data: Any) -> None:
    try:
        text = json.dumps(data, ensure_ascii=False)
        text.encode()
    except (UnicodeEncodeError, RecursionError):
        raise ParseError("The body has half a surrogate pair in a text; send whole characters.") from None
    if "\\u0000" in text:
        raise ParseError("The body has a NUL character in a text; leave it out.")
