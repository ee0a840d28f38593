"""The assertion engine: pure Python, no Django."""

from .base import Assertion, BadOption, PassingRange, Verdict, option
from .catalogue import assertion_types
from .limits import CannotCheck
from .results import AssertionsResult, GradingResult
from .subject import AssertionContext, Subject
from .suite import (
    AssertionPlan,
    Problem,
    compile_assertions,
    run_assertion,
    run_assertions,
    run_assertions_sync,
    validate_assertions,
)

__all__ = [
    "Assertion",
    "AssertionContext",
    "AssertionPlan",
    "AssertionsResult",
    "BadOption",
    "CannotCheck",
    "GradingResult",
    "PassingRange",
    "Problem",
    "Subject",
    "Verdict",
    "assertion_types",
    "compile_assertions",
    "option",
    "run_assertion",
    "run_assertions",
    "run_assertions_sync",
    "validate_assertions",
]
