"""What every assertion type shares: its options, its verdict, its place in the registry."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol

from evals_app.assertions.context import CheckedOutput


@dataclass(slots=True)
class Verdict:
    """What a check found; without a score it is 1.0 or 0.0."""

    passed: bool
    reason: str
    score: float | None = None
    measured: float | None = None


@dataclass(frozen=True, slots=True)
class PassingRange:
    """The measured numbers that pass; an end that is None is open, and `not-` wants those outside."""

    low: float | None
    high: float | None
    measures: str
    negated: bool = False


class OptionKind(Protocol):
    """How an option is read and documented."""

    @property
    def name(self) -> str:
        """What the docs call it."""

    def parse(self, raw: Any) -> Any:
        """Return the value to keep, or raise BadOption."""


@dataclass(frozen=True)
class Assertion:
    """One check, ready to run; a subclass with a `type` is a new assertion type."""

    type: ClassVar[str] = ""
    example: ClassVar[dict[str, Any]] = {}
    #: Whether a check can take long enough to be worth a thread when an event loop waits.
    may_be_slow: ClassVar[bool] = False
    #: What the measured number is, where there is one: cost, latency, score, words, characters.
    measures: ClassVar[str] = ""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not cls.type:
            return
        if cls.type in registry:
            raise TypeError(f"Two assertion types are called {cls.type!r}.")
        if cls.type.startswith("not-"):
            raise TypeError(f"Assertion type {cls.type!r} begins with 'not-', which means negation.")
        registry[cls.type] = cls

    def prepare(self) -> None:
        """Compute every cached property when compiled, so that no run has to."""
        for cls in type(self).__mro__:
            for name, attribute in vars(cls).items():
                if isinstance(attribute, cached_property):
                    getattr(self, name)

    def check(self, output: CheckedOutput) -> Verdict:
        """Return a verdict, or raise CannotCheck when there can be none."""
        raise NotImplementedError

    def passing(self) -> tuple[float | None, float | None]:
        """Return the lowest and the highest measured number that pass; only for types that measure."""
        return None, None


@dataclass(frozen=True)
class Option:
    """One key an assertion type takes."""

    name: str
    kind: OptionKind
    description: str
    required: bool = False
    default: Any = None
    takes_null: bool = False


def option(kind: OptionKind, description: str, *, takes_null: bool = False) -> dict[str, Any]:
    """Describe a dataclass field that is an option; without a default it is required."""
    return {"kind": kind, "description": description, "takes_null": takes_null}


registry: dict[str, type[Assertion]] = {}


class BadOption(ValueError):
    """An option that cannot be used; the path says where inside it."""

    def __init__(self, message: str, path: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.path = path


def json_text(value: object) -> str:
    """Write a value as JSON, or raise BadOption where JSON cannot express it."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except RecursionError:
        raise BadOption("is nested too deeply, or contains itself") from None
    except (TypeError, ValueError) as error:
        raise BadOption(f"has no JSON form ({error}); write it in quotes if text is meant") from None
