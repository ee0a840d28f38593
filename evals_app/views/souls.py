"""The library of souls, and one soul: its prompt, where it is used, how each version did."""

from __future__ import annotations

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from evals_app.outputs import read_text
from evals_app.souls import history, score_chart
from evals_app.views.plain import plain
from workflows_app import access
from workflows_app.addresses import asked_number, page_of
from workflows_app.diff import side_by_side
from workflows_app.models import Soul, SoulVersion, Workflow
from workflows_app.soul_usage import MOST_WORKFLOWS, uses_by_soul, uses_of

SEE = "workflows_app.view_soul"
PAGE_SIZE = 50
LONGEST_TEXT = 200
PROMPT_BYTES = 16_000
USES_SHOWN = 20
VERSIONS_A_PAGE = 25
SHORT = 7  # letters that tell one version from another


@require_safe
@access.requires(SEE)
def soul_list(request: HttpRequest) -> HttpResponse:
    """Every soul of the library, with where it is used."""
    search = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_TEXT]
    after = request.GET.get("after", "").replace("\0", "")[:LONGEST_TEXT]
    rows = Soul.objects.order_by("slug")
    if search:
        rows = rows.filter(Q(slug__icontains=search) | Q(name__icontains=search) | Q(role__icontains=search))
    found = list((rows.filter(slug__gt=after) if after else rows)[: PAGE_SIZE + 1])
    souls = found[:PAGE_SIZE]
    uses = uses_by_soul(soul.slug for soul in souls) if souls else {}
    context = {
        "rows": [(soul, uses[soul.slug]) for soul in souls],
        "search": search,
        "is_filtered": bool(search or after),
        "next_after": souls[-1].slug if len(found) > PAGE_SIZE else "",
        "most_workflows": MOST_WORKFLOWS,
        "is_partly_searched": Workflow.objects.all()[MOST_WORKFLOWS:].exists(),
        "may_save": access.may(request.user, "workflows_app.add_soul"),
    }
    return render(request, "evals/souls.html", context)


@require_safe
@access.requires(SEE)
def soul_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One soul."""
    soul = get_object_or_404(Soul, slug=slug)
    uses, versions = uses_of(slug), history(soul)
    context = {
        "soul": soul,
        "prompt": read_text(soul.system_prompt, PROMPT_BYTES),
        "uses": uses[:USES_SHOWN],
        "uses_left_out": len(uses[USES_SHOWN:]),
        "versions": page_of(request, "versions", versions, VERSIONS_A_PAGE),
        "has_runs": any(one["runs"] for one in versions),
        "chart": score_chart(soul, uses),
        "may_save": access.may(request.user, "workflows_app.change_soul"),
    }
    return render(request, "evals/soul.html", context)


@require_safe
@access.requires(SEE)
def soul_prompt(request: HttpRequest, slug: str) -> HttpResponse:
    """The whole prompt as plain text."""
    soul = get_object_or_404(Soul.objects.only("system_prompt"), slug=slug)
    return plain(soul.system_prompt)


@require_safe
@access.requires(SEE)
def version_page(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """One version of a soul beside the one before it."""
    found = get_object_or_404(
        SoulVersion.objects.select_related("soul", "author"), soul__slug=slug, version=version
    )
    versions = found.soul.versions
    before = versions.filter(pk__lt=found.pk).order_by("-pk").first()
    after = versions.filter(pk__gt=found.pk).order_by("pk").only("version").first()
    context = {
        "soul": found.soul,
        "version": found,
        "before": before,
        "after": after,
        "diff": side_by_side(before.text, found.text).part(asked_number(request, "parts"))
        if before
        else None,
        "old_title": f"Version {before.version[:SHORT]}" if before else "",
        "new_title": f"Version {version[:SHORT]}",
        "text": read_text(found.text, PROMPT_BYTES),
    }
    return render(request, "evals/soul_version.html", context)


@require_safe
@access.requires(SEE)
def version_text(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Everything that makes a version what it is, as plain text."""
    found = get_object_or_404(SoulVersion, soul__slug=slug, version=version)
    return plain(found.text)
