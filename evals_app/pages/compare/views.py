"""Two runs side by side."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from evals_app.pages.compare.comparison import Comparison
from workflows_app.display.diff import Diff
from workflows_app.display.querystring import asked_number, page_of
from workflows_app.models import Run
from workflows_app.security import access

TONES = {"worse": ("bad", "trend-down"), "better": ("good", "trend-up"), "mixed": ("warn", "warning")}
BLOCKS_A_PAGE = 20
FLIPS_SHOWN = 10  # of a block among others


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
        "is_demo": old.workflow.is_demo or new.workflow.is_demo,
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
    for block in page:
        block.diff = block.whole_diff.beginning()
    tone, drawing = TONES.get(comparison.tone, ("", "equal"))
    return {
        "blocks": page,
        "left_out": len(comparison.blocks) - len(shown),
        "flips_shown": FLIPS_SHOWN,
        "tone": tone,
        "drawing": drawing,
        "yaml_diff": comparison.yaml_diff.beginning(),
        "inputs_diff": comparison.inputs_diff.beginning(),
    }


def _one(request: HttpRequest, comparison: Comparison, only: str) -> dict[str, Any]:
    """One thing of two runs; no block may be called inputs or workflow."""

    def part(diff: Diff) -> Diff:
        return diff.page(asked_number(request, "lines"))

    if only == "workflow":
        return {"title": "The workflows", "diff": part(comparison.yaml_diff)}
    if only == "inputs":
        return {"title": "The inputs", "diff": part(comparison.inputs_diff)}
    block = comparison.block(only)
    if block is None:
        raise Http404("Neither run has such a block.")
    block.diff = part(block.whole_diff)
    return {"compared": block, "flips": page_of(request, "verdicts", block.flips)}
