"""The assertion engine: pure Python, no Django."""

from evals_app.assertions.base import Assertion, BadOption, PassingRange, Verdict, option
from evals_app.assertions.catalogue import assertion_types
from evals_app.assertions.context import AssertionContext, CheckedOutput
from evals_app.assertions.limits import CannotCheck
from evals_app.assertions.results import AssertionsResult, GradingResult
from evals_app.assertions.runner import (
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
    "CheckedOutput",
    "GradingResult",
    "PassingRange",
    "Problem",
    "Verdict",
    "assertion_types",
    "compile_assertions",
    "option",
    "run_assertion",
    "run_assertions",
    "run_assertions_sync",
    "validate_assertions",
]
