"""The form of a workflow's text: the same faults as everywhere, and nobody's edit lost."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import AbstractBaseUser
from django.core.exceptions import PermissionDenied
from django.urls import reverse

from workflows_app import access
from workflows_app.diff import Diff, side_by_side
from workflows_app.documents import check_document_for
from workflows_app.engine.definition import Fault
from workflows_app.engine.keys import RESERVED_SLUGS
from workflows_app.models import Soul, Workflow, WorkflowVersion

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[Workflow]
else:
    ModelForm = forms.ModelForm

MOST_NAMES = 1000
FIRST_TEXT = """\
version: "1.0"
souls:
  analyst:
    role: Analyst
    system_prompt: You analyse what you are given.
    provider: demo
    model_name: demo-small
blocks:
  analyze:
    type: llm
    soul_ref: analyst
    prompt: Analyse {{ inputs.topic }}
    assertions:
      - type: word-count
        value: {min: 5}
interface:
  inputs:
    - {name: topic, type: string, required: true}
"""


class DocumentWidget(forms.Textarea):
    """A plain textarea that `editor.js` turns into an editor."""

    class Media:
        js = (
            "django_ace/ace/ace.js",
            "django_ace/ace/mode-yaml.js",
            "django_ace/ace/ext-language_tools.js",
            "django_ace/ace/ext-searchbox.js",
            forms.Script("js/yaml_place.js", defer=True),
            forms.Script("js/editor.js", defer=True),
        )
        css = {"all": ("django_ace/ace/css/ace.css", "css/editor.css")}

    def build_attrs(self, base_attrs: Any, extra_attrs: Any = None) -> dict[str, Any]:
        souls = Soul.objects.values_list("slug", flat=True)[:MOST_NAMES]
        workflows = Workflow.objects.values_list("slug", flat=True)[:MOST_NAMES]
        return {
            **super().build_attrs(base_attrs, extra_attrs),
            "data-editor": "yaml",
            "data-check": reverse("admin:workflows_app_workflow_check"),
            "data-schema": reverse("api-document-schema"),
            "data-souls": " ".join(souls),
            "data-workflows": " ".join(workflows),
            "spellcheck": "false",
            "wrap": "off",
            "rows": 32,
        }


class WorkflowForm(ModelForm):
    """The text of a workflow and a message for the version that saving makes."""

    yaml = forms.CharField(label="Document", strip=False, widget=DocumentWidget)
    message = forms.CharField(
        label="What changed",
        max_length=500,
        required=False,
        help_text="Kept with the version, for whoever asks later.",
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )
    based_on = forms.IntegerField(widget=forms.HiddenInput, required=False)
    save_over = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Workflow
        fields = ("slug", "enabled")

    user: AbstractBaseUser
    stale_version: WorkflowVersion | None = None
    faults: tuple[Fault, ...] = ()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        current = self.instance.current_version if self.instance.pk else None
        if current is not None:
            self.initial.update(yaml=current.yaml, based_on=current.number)
        else:
            self.initial.setdefault("yaml", FIRST_TEXT)
            self.initial.setdefault("based_on", 0)

    def clean_slug(self) -> str:
        slug: str = self.cleaned_data["slug"]
        if slug in RESERVED_SLUGS:
            raise forms.ValidationError(f"{slug!r} is a path of ours; choose another slug.")
        return slug

    def clean_yaml(self) -> str:
        # A form sends every line end as CRLF; a document keeps its own.
        text: str = self.cleaned_data["yaml"]
        return text.replace("\r\n", "\n")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if "yaml" in data and (slug := data.get("slug") or self.instance.slug):
            self._check_document(slug, data["yaml"])
        self._check_base(data)
        return data

    def _check_document(self, slug: str, text: str) -> None:
        definition, faults = check_document_for(slug, text)
        self.faults = tuple(faults)
        for fault in faults:
            self.add_error("yaml", str(fault))
        try:
            access.check_save(self.user, definition)
        except PermissionDenied as denied:
            self.add_error("yaml", str(denied))

    def _check_base(self, data: dict[str, Any]) -> None:
        """Tell the second of two writers; `save_over` is the version they were shown and decided to replace."""
        if not self.instance.pk:
            return
        current = WorkflowVersion.objects.select_related("author", "workflow").filter(
            pk__in=Workflow.objects.filter(pk=self.instance.pk).values("current_version")
        ).first()  # fmt: skip
        number = current.number if current else 0
        if number in (data.get("based_on") or 0, data.get("save_over")):
            data["based_on"] = number
        else:
            self.stale_version = current
            self.add_error(
                None,
                f"Version {number} was saved by {author_of(current)} while you were editing. "
                "Nothing of yours was saved yet, and nothing of theirs is lost: compare below.",
            )

    @property
    def stale_diff(self) -> Diff | None:
        """Theirs beside mine, where somebody else was first."""
        if self.stale_version is None:
            return None
        return side_by_side(self.stale_version.yaml, self.cleaned_data.get("yaml", ""))


def author_of(version: WorkflowVersion | None) -> str:
    """Who saved a version, for sentences."""
    return version.author.get_username() if version and version.author else "somebody"


def copied_text(workflow: Workflow, slug: str) -> str:
    """The current text for another slug."""
    text = workflow.current_version.yaml if workflow.current_version else FIRST_TEXT
    return re.sub(r"^id:.*$", f"id: {slug}", text, count=1, flags=re.MULTILINE)
