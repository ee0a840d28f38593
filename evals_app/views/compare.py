"""Two runs side by side."""

from __future__ import annotations

import json
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from evals_app.comparison import Comparison
from workflows_app import access
from workflows_app.credentials import shown_inputs
from workflows_app.diff import side_by_side
from workflows_app.models import Run

TONES = {"worse": ("bad", "trend-down"), "better": ("good", "trend-up"), "mixed": ("warn", "warning")}


@require_safe
@access.requires(access.SEE)
def compare_runs(request: HttpRequest, run_id: UUID, other_id: UUID) -> HttpResponse:
    """A run beside another one, block by block; `?changed=1` leaves out what is the same."""
    runs = Run.objects.select_related("workflow", "version__workflow")
    new, old = get_object_or_404(runs, pk=run_id), get_object_or_404(runs, pk=other_id)
    comparison = Comparison(new, old)
    is_changed_only = request.GET.get("changed") == "1"
    tone, drawing = TONES.get(comparison.tone, ("", "equal"))
    context = {
        "comparison": comparison,
        "new": new,
        "old": old,
        "blocks": comparison.changed if is_changed_only else comparison.blocks,
        "left_out": len(comparison.blocks) - len(comparison.changed) if is_changed_only else 0,
        "is_changed_only": is_changed_only,
        "tone": tone,
        "drawing": drawing,
        "yaml_diff": side_by_side(old.version.yaml, new.version.yaml),
        "inputs_diff": side_by_side(_laid_out(old), _laid_out(new)),
        "is_same_workflow": comparison.is_same_workflow,
        "old_title": comparison.old_title,
        "new_title": comparison.new_title,
    }
    return render(request, "evals/compare.html", context)


def _laid_out(run: Run) -> str:
    return json.dumps(shown_inputs(run), indent=2, ensure_ascii=False, sort_keys=True)
