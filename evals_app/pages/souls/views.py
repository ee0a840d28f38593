"""The library of souls, and one soul: its prompt, where it is used, how each version did."""

from __future__ import annotations

from django.db.models import Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from evals_app.monitoring.souls import history, score_chart
from evals_app.pages.outputs import read_text
from evals_app.pages.responses import plain
from workflows_app.display.diff import side_by_side
from workflows_app.display.formats import short_hash
from workflows_app.display.querystring import PAGE_SIZE, asked_number, asked_text, page_of
from workflows_app.documents.usage import MOST_WORKFLOWS, uses_by_soul, uses_of
from workflows_app.models import Soul, SoulVersion, Workflow
from workflows_app.security import access

SEE = "workflows_app.view_soul"
USES_SHOWN = 50
USES_LISTED = 3  # in a row of the list
BLOCKS_LISTED = 8  # of one workflow


@access.requires(SEE)
def soul_list(request: HttpRequest) -> HttpResponse:
    """Every soul of the library, with where it is used."""
    search, after = asked_text(request, "q"), asked_text(request, "after")
    rows = Soul.objects.order_by("slug")
    if search:
        rows = rows.filter(Q(slug__icontains=search) | Q(name__icontains=search) | Q(role__icontains=search))
    found = list((rows.filter(slug__gt=after) if after else rows)[: PAGE_SIZE + 1])
    souls = found[:PAGE_SIZE]
    uses = uses_by_soul(soul.slug for soul in souls) if souls else {}
    context = {
        "rows": [(soul, uses[soul.slug][:USES_LISTED], len(uses[soul.slug][USES_LISTED:])) for soul in souls],
        "search": search,
        "is_filtered": bool(search or after),
        "next_after": souls[-1].slug if len(found) > PAGE_SIZE else "",
        "most_workflows": MOST_WORKFLOWS,
        "is_partly_searched": Workflow.objects.all()[MOST_WORKFLOWS:].exists(),
        "may_save": access.may(request.user, "workflows_app.add_soul"),
    }
    return render(request, "evals/souls.html", context)


@access.requires(SEE)
def soul_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One soul."""
    soul = get_object_or_404(Soul, slug=slug)
    uses, versions = uses_of(slug), history(soul)
    context = {
        "soul": soul,
        "prompt": read_text(soul.system_prompt),
        "uses": [
            (use.workflow, use.blocks[:BLOCKS_LISTED], len(use.blocks[BLOCKS_LISTED:]))
            for use in uses[:USES_SHOWN]
        ],
        "uses_left_out": len(uses[USES_SHOWN:]),
        "versions": page_of(request, "versions", versions),
        "has_runs": any(one["runs"] for one in versions),
        "chart": score_chart(soul, uses),
        "may_save": access.may(request.user, "workflows_app.change_soul"),
    }
    return render(request, "evals/soul.html", context)


@access.requires(SEE)
def soul_prompt(request: HttpRequest, slug: str) -> HttpResponse:
    """The whole prompt as plain text."""
    soul = get_object_or_404(Soul.objects.only("system_prompt"), slug=slug)
    return plain(soul.system_prompt)


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
        "diff": side_by_side(before.text, found.text).page(asked_number(request, "lines"))
        if before
        else None,
        "old_title": f"Version {short_hash(before.version)}" if before else "",
        "new_title": f"Version {short_hash(version)}",
        "text": read_text(found.text),
    }
    return render(request, "evals/soul_version.html", context)


@access.requires(SEE)
def version_text(request: HttpRequest, slug: str, version: str) -> HttpResponse:
    """Everything that makes a version what it is, as plain text."""
    found = get_object_or_404(SoulVersion, soul__slug=slug, version=version)
    return plain(found.text)
