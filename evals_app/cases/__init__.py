"""Eval cases: a workflow's assertions on fixed inputs, offline. Pure Python, no Django.

document = read_document(text)
result = Evaluation(SuiteOptions(fail_fast=True)).run(document, Surroundings())
"""

from evals_app.cases.compare import CaseChange, CaseVerdict, compare
from evals_app.cases.document import Document, read_document
from evals_app.cases.results import Attempt, BlockScore, CaseResult, Check, SuiteResult
from evals_app.cases.suite import Evaluation, SuiteOptions

__all__ = [
    "Attempt",
    "BlockScore",
    "CaseChange",
    "CaseResult",
    "CaseVerdict",
    "Check",
    "Document",
    "Evaluation",
    "SuiteOptions",
    "SuiteResult",
    "compare",
    "read_document",
]
