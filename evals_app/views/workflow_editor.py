"""Start from your own file, or change one: paste YAML, see the faults on their lines, save, run."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_POST

from evals_app.views.workflows import find
from workflows_app import access, services
from workflows_app.documents import check_document, check_document_for
from workflows_app.engine.definition import Fault, InvalidDocument, WorkflowDefinition
from workflows_app.engine.keys import RESERVED_SLUGS
from workflows_app.models import Workflow

LARGEST_FORM = 1_500_000  # characters; the parser has its own, smaller limit and says so
AROUND = 2  # lines shown before and after a fault
MOST_FAULTS = 100
SLUG = re.compile(r"[a-z0-9][a-z0-9_-]{0,199}")
SAMPLE = """\
version: "1.0"
id: analysis
souls:
  analyst:
    role: Analyst
    system_prompt: You analyse topics for executives.
    provider: demo
    model_name: demo-small
blocks:
  analyze:
    type: llm
    soul_ref: analyst
    prompt: "Analyse {{ inputs.topic }} in at most 120 words."
    assertions:
      - {type: word-count, value: {min: 20, max: 150}}
      - {type: not-icontains, value: "as an AI"}
      - {type: cost, threshold: 0.05}
interface:
  inputs:
    - name: topic
      type: string
      default: heat pumps for small offices
      description: What to analyse.
workflow: {name: Analysis}
"""


@dataclass(frozen=True)
class Line:
    """A line of the document, with the faults on it; a gap where lines are left out."""

    number: int
    text: str
    faults: tuple[str, ...] = ()
    is_gap: bool = False


@require_http_methods(["GET", "HEAD", "POST"])
@access.requires("workflows_app.add_workflow")
def start(request: HttpRequest) -> HttpResponse:
    """A new workflow from a text."""
    if request.method != "POST":
        return _page(request, None, SAMPLE, faults=None)
    text, slug = _text(request), request.POST.get("slug", "").strip()
    definition, faults = check_document(text)
    slug = slug or (definition.slug if definition and definition.slug else "")
    faults = faults or _slug_faults(slug, definition)
    if faults:
        return _page(request, None, text, faults, slug=slug, status=400)
    return _save(request, None, slug, text, definition, based_on=0)


@require_http_methods(["GET", "HEAD", "POST"])
@access.requires("workflows_app.change_workflow")
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """A new version of a workflow."""
    workflow = find(slug)
    if request.method != "POST":
        text = (
            workflow.current_version.yaml if workflow.current_version else SAMPLE.replace("analysis", slug, 1)
        )
        return _page(request, workflow, text, faults=None, slug=slug)
    text = _text(request)
    definition, faults = check_document_for(slug, text)
    if faults:
        return _page(request, workflow, text, faults, slug=slug, status=400)
    based_on = request.POST.get("based_on", "")
    number = int(based_on) if based_on.isdecimal() and len(based_on) < 9 else 0
    return _save(request, workflow, slug, text, definition, based_on=number)


@require_POST
@access.requires("workflows_app.view_workflow")
def check(request: HttpRequest) -> HttpResponse:
    """What is wrong with a text that is being typed; nothing is saved."""
    text = _text(request)
    definition, faults = check_document(text)
    return render(request, "evals/_faults.html", _checked(text, definition, faults))


def _text(request: HttpRequest) -> str:
    return request.POST.get("yaml", "").replace("\r\n", "\n")[:LARGEST_FORM]


def _slug_faults(slug: str, definition: WorkflowDefinition | None) -> list[Fault]:
    if not slug:
        return [Fault("id", None, "Give the workflow a short name (or an `id:` in the document).")]
    if not SLUG.fullmatch(slug):
        return [Fault("id", None, f"“{slug[:60]}” will not do as a name; use a-z, 0-9, dashes, up to 200.")]
    if slug in RESERVED_SLUGS:
        return [Fault("id", None, f"“{slug}” is reserved; choose another name.")]
    if definition and definition.slug not in (None, slug):
        return [
            Fault("id", None, f"The document calls itself “{definition.slug}”, the name given is “{slug}”.")
        ]
    if Workflow.objects.filter(slug=slug).exists():
        return [Fault("id", None, f"There is a workflow “{slug}” already; open it to change it.")]
    return []


def _save(
    request: HttpRequest,
    workflow: Workflow | None,
    slug: str,
    text: str,
    definition: WorkflowDefinition | None,
    based_on: int,
) -> HttpResponse:
    try:
        access.check_save(request.user, definition)
        version = services.save_version(
            slug,
            text,
            author=request.user,  # type: ignore[arg-type]  # logged in, or the decorator had refused
            message=request.POST.get("message", "").strip()[:500],
            based_on=based_on,
        )
    except PermissionDenied as denied:
        return _page(request, workflow, text, [Fault("", None, str(denied))], slug=slug, status=403)
    except InvalidDocument as invalid:
        return _page(request, workflow, text, invalid.faults, slug=slug, status=400)
    except services.Stale as stale:
        return _page(request, workflow, text, [Fault("", None, stale.message)], slug=slug, status=409)
    except IntegrityError:
        fault = Fault("", None, "Somebody else saved at the same moment; look at theirs and save again.")
        return _page(request, workflow, text, [fault], slug=slug, status=409)
    if workflow and version.pk == workflow.current_version_id:
        messages.info(request, f"Nothing changed: version {version.number} has this very text.")
    else:
        messages.success(request, f"Saved as version {version.number}.")
    if request.POST.get("then") == "run":
        return redirect("workflow-run", slug)
    return redirect(version.workflow.get_absolute_url())


def _page(
    request: HttpRequest,
    workflow: Workflow | None,
    text: str,
    faults: list[Fault] | None,
    *,
    slug: str = "",
    status: int = 200,
) -> HttpResponse:
    definition, found = check_document(text) if faults is None else (None, faults)
    context = {
        "workflow": workflow,
        "section": "workflows",
        "is_refused": faults is not None,
        "yaml": text,
        "slug": slug,
        "message": request.POST.get("message", ""),
        "based_on": request.POST.get("based_on") or _current_number(workflow),
        **_checked(text, definition, found),
    }
    return render(request, "evals/workflow_edit.html", context, status=status)


def _current_number(workflow: Workflow | None) -> int:
    return workflow.current_version.number if workflow and workflow.current_version else 0


def _checked(text: str, definition: WorkflowDefinition | None, faults: list[Fault]) -> dict[str, Any]:
    shown = faults[:MOST_FAULTS]
    return {
        "definition": definition,
        "faults": faults,
        "elsewhere": [fault for fault in shown if not fault.line],
        "lines": lines_with(text, shown),
        "left_out": len(faults) - len(shown),
    }


def lines_with(text: str, faults: list[Fault]) -> list[Line]:
    """The lines with faults and some around them; what lies between is one gap."""
    by_line: dict[int, list[str]] = {}
    for fault in faults:
        if fault.line:
            by_line.setdefault(fault.line, []).append(
                f"{fault.path}: {fault.message}" if fault.path else fault.message
            )
    written = text.splitlines()
    wanted = sorted(
        {
            number
            for line in by_line
            for number in range(line - AROUND, line + AROUND + 1)
            if 1 <= number <= max(len(written), line)
        }
    )
    lines: list[Line] = []
    for number in wanted:
        if lines and number > lines[-1].number + 1:
            lines.append(Line(number - 1, "", is_gap=True))
        content = written[number - 1] if number <= len(written) else ""
        lines.append(Line(number, content[:400], tuple(by_line.get(number, ()))))
    return lines
