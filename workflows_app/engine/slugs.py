"""The one rule for the slug of a new workflow or soul."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from workflows_app.engine.schema.kinds import Text

SLUG: Final = Text(
    max_length=200,
    min_length=1,
    pattern=re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*"),
    must_be="a slug of lower-case letters and digits joined by single '-' or '_'",
    reserved=frozenset({"validate", "schema"}),  # paths of the API
    name="slug",
)
slug_error = SLUG.problem
# A soul inside a document may have any slug of the library, and any older spelling: saved texts stay readable.
SOUL_ID: Final = replace(
    SLUG,
    pattern=re.compile(r"[A-Za-z0-9_-]+"),
    must_be="a name of letters, digits, '_' and '-'",
    reserved=frozenset(),
    name="name",
)


def slug_from(text: str) -> str:
    """The slug closest to a name; empty if the name has no letter or digit that a slug may have."""
    words = re.sub(r"[^a-z0-9_]+|_{2,}", "-", text.lower())[: SLUG.max_length]
    return re.sub(r"[-_]*-[-_]*", "-", words).strip("-_")
