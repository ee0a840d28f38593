"""Small documents for tests."""

from __future__ import annotations

from typing import Any

from workflows_app.engine.definition import Fault, InvalidDocument
from workflows_app.engine.validate import compile_document


def faults_of(text: str | bytes, **options: Any) -> list[Fault]:
    """Every fault of a text; none if it is valid."""
    try:
        compile_document(text, **options)
    except InvalidDocument as error:
        assert error.faults
        return error.faults
    return []


def one_fault(text: str | bytes, **options: Any) -> Fault:
    """The only fault of a text."""
    faults = faults_of(text, **options)
    assert len(faults) == 1, "\n".join(map(str, faults)) or "no fault"
    return faults[0]
