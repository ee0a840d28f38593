"""Two runs side by side."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from evals_app.comparison import Comparison, show_beginnings
from workflows_app import access
from workflows_app.addresses import asked_number, page_of
from workflows_app.diff import Diff
from workflows_app.models import Run

TONES = {"worse": ("bad", "trend-down"), "better": ("good", "trend-up"), "mixed": ("warn", "warning")}
BLOCKS_A_PAGE = 8
BLOCKS_BYTES = 50_000  # of all differences between outputs on one page
FOLDED_BYTES = 6_000  # of the workflow's, and of the inputs'
FLIPS_SHOWN = 5  # of a block among others
FLIPS_A_PAGE = 30


@require_safe
@access.requires(access.SEE)
def compare_runs(request: HttpRequest, run_id: UUID, other_id: UUID) -> HttpResponse:
    """A run beside another one, block by block.

    `?changed=1` leaves out what is the same; `?only=` shows one block, the `inputs` or the `workflow`, to its end.
    """
    runs = Run.objects.select_related("workflow", "version__workflow")
    new, old = get_object_or_404(runs, pk=run_id), get_object_or_404(runs, pk=other_id)
    comparison = Comparison(new, old)
    is_changed_only = request.GET.get("changed") == "1"
    context = {
        "comparison": comparison,
        "new": new,
        "old": old,
        "is_same_workflow": comparison.is_same_workflow,
        "old_title": comparison.old_title,
        "new_title": comparison.new_title,
        "is_changed_only": is_changed_only,
    }
    if only := request.GET.get("only", ""):
        return render(request, "evals/compare_one.html", context | _one(request, comparison, only))
    return render(request, "evals/compare.html", context | _all(request, comparison, is_changed_only))


def _all(request: HttpRequest, comparison: Comparison, is_changed_only: bool) -> dict[str, Any]:
    shown = comparison.changed if is_changed_only else comparison.blocks
    page = page_of(request, "blocks", shown, BLOCKS_A_PAGE)
    show_beginnings(list(page), BLOCKS_BYTES)
    tone, drawing = TONES.get(comparison.tone, ("", "equal"))
    return {
        "blocks": page,
        "left_out": len(comparison.blocks) - len(shown),
        "flips_shown": FLIPS_SHOWN,
        "tone": tone,
        "drawing": drawing,
        "yaml_diff": comparison.yaml_diff.beginning(FOLDED_BYTES),
        "inputs_diff": comparison.inputs_diff.beginning(FOLDED_BYTES),
    }


def _one(request: HttpRequest, comparison: Comparison, only: str) -> dict[str, Any]:
    """One thing of two runs; no block may be called inputs or workflow."""

    def part(diff: Diff) -> Diff:
        return diff.part(asked_number(request, "parts"))

    if only == "workflow":
        return {"title": "The workflows", "diff": part(comparison.yaml_diff)}
    if only == "inputs":
        return {"title": "The inputs", "diff": part(comparison.inputs_diff)}
    block = comparison.block(only)
    if block is None:
        raise Http404("Neither run has such a block.")
    block.diff = part(block.whole_diff)
    return {"compared": block, "flips": page_of(request, "verdicts", block.flips, FLIPS_A_PAGE)}
