"""The form in which a workflow is written, on the site and in the admin: every error at once, and nobody's edit lost."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.core.exceptions import PermissionDenied

from workflows_app import services
from workflows_app.display.diff import Diff, side_by_side
from workflows_app.documents.compile import check_document, slug_errors
from workflows_app.engine.definition import Fault, WorkflowDefinition
from workflows_app.graph.definition import drawing_of
from workflows_app.models import Soul, Workflow, WorkflowVersion
from workflows_app.security import access

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[Workflow]
else:
    ModelForm = forms.ModelForm

MOST_NAMES = 1000
MOST_ERRORS = 100
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
class Checked:
    """What `site/_yaml_check.html` says of a text."""

    definition: WorkflowDefinition | None
    errors: list[Fault]
    is_denied: bool = False

    @property
    def shown_errors(self) -> list[Fault]:
        return self.errors[:MOST_ERRORS]

    @property
    def left_out(self) -> int:
        return len(self.errors[MOST_ERRORS:])

    @property
    def graph(self) -> str:
        return drawing_of(self.definition, is_asked=True) if self.definition else ""


def check_text(user: AbstractBaseUser | AnonymousUser, text: str, slug: str = "") -> Checked:
    """Whether this user could save a text, as the workflow of a slug if it has one already."""
    definition, errors = check_document(text, slug)
    try:
        access.check_save(user, definition)
    except PermissionDenied as denied:
        return Checked(definition, [Fault("", None, str(denied))], is_denied=True)
    return Checked(definition, errors)


class DocumentWidget(forms.Textarea):
    """A plain textarea that `editor.js` turns into an editor."""

    class Media:
        js = (
            "django_ace/ace/ace.js",
            "django_ace/ace/mode-yaml.js",
            "django_ace/ace/ext-language_tools.js",
            "django_ace/ace/ext-searchbox.js",
            forms.Script("js/swap.js", defer=True),
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
            "data-souls": " ".join(souls),
            "data-workflows": " ".join(workflows),
            "spellcheck": "false",
            "autocapitalize": "none",
            "autocomplete": "off",
            "wrap": "off",
            "rows": 32,
        }


class WorkflowForm(ModelForm):
    """The text of a workflow and a message for the version that saving makes."""

    slug = forms.CharField(
        label="Short name",
        max_length=200,
        required=False,
        help_text="Its address: a-z, 0-9 and dashes. Leave it empty where the document has an id.",
        error_messages={"unique": "There is a workflow of this name already; open it to change it."},
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )
    yaml = forms.CharField(label="Document", strip=False, widget=DocumentWidget)
    message = forms.CharField(
        label="What changed, and why",
        max_length=500,
        required=False,
        help_text="Kept with the version, for whoever asks later.",
        widget=forms.TextInput(attrs={"class": "vTextField"}),
    )
    based_on = forms.IntegerField(widget=forms.HiddenInput, required=False)
    save_over = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Workflow
        fields: tuple[str, ...] = ("slug", "enabled")

    # The script hides the textarea, and a browser cannot ask for what is hidden.
    use_required_attribute = False
    user: AbstractBaseUser | AnonymousUser
    stale_version: WorkflowVersion | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance.pk:
            self.fields.pop("slug", None)  # runs, links and the API know a workflow by its slug
        current = self.instance.current_version if self.instance.pk else None
        self.initial.setdefault(
            "yaml", current.yaml if current else text_for(self.instance, self.instance.slug)
        )
        self.initial["based_on"] = current.number if current else 0
        self.checked = Checked(None, [])

    def clean_yaml(self) -> str:
        # A form sends every line end as CRLF; a document keeps its own.
        text: str = self.cleaned_data["yaml"]
        return text.replace("\r\n", "\n")

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if "yaml" in data:
            slug = data.get("slug") or self.instance.slug
            self.checked = check_text(self.user, data["yaml"], slug)
            if not slug and (definition := self.checked.definition):
                self._take_slug(data, definition)
            for error in self.checked.errors:
                self.add_error("yaml", str(error))
        self._check_base(data)
        return data

    def _take_slug(self, data: dict[str, Any], definition: WorkflowDefinition) -> None:
        """Name a new workflow as its document does."""
        if definition.slug:
            data["slug"] = definition.slug
            errors = slug_errors(definition.slug, definition)
        else:
            errors = [Fault("id", None, "Give the workflow a short name (or an `id:` in the document).")]
        self.checked = replace(self.checked, errors=errors or self.checked.errors)

    def _check_base(self, data: dict[str, Any]) -> None:
        """Stop the second of two writers; `save_over` is the version they were shown and decided to replace."""
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
            author = current.author.get_username() if current and current.author else "somebody"
            self.add_error(
                None,
                f"Version {number} was saved by {author} while you were editing. "
                "Nothing of yours was saved yet, and nothing of theirs is lost: compare the two.",
            )

    @property
    def check(self) -> Checked:
        """What is known of the text that the form shows."""
        if not self.is_bound:
            return check_text(self.user, self.initial["yaml"], self.instance.slug)
        if not self.checked.errors and "yaml" in self.errors:  # such as none at all
            return Checked(None, [Fault("", None, str(message)) for message in self.errors["yaml"]])
        return self.checked

    @property
    def stale_diff(self) -> Diff | None:
        """Theirs beside mine, where somebody else was first."""
        if self.stale_version is None:
            return None
        return side_by_side(self.stale_version.yaml, self.cleaned_data.get("yaml", ""))

    def save_version(self) -> tuple[WorkflowVersion, str]:
        """Save the text that was checked, and say in a sentence what was saved."""
        data, was = self.cleaned_data, self.instance.current_version_id
        version = services.save_version(
            self.instance.slug,
            data["yaml"],
            definition=self.checked.definition,
            author=self.user,  # type: ignore[arg-type]  # nobody else reaches a form that saves
            message=data["message"],
            enabled=False if not self.instance.pk and data.get("enabled") is False else None,
            based_on=data["based_on"] if self.instance.pk else 0,
        )
        number, is_new = version.number, version.pk != was
        unchanged = f"Nothing changed: version {number} has this very text, so there is no new version."
        return version, f"Saved as version {number}." if is_new else unchanged


def text_for(workflow: Workflow, slug: str) -> str:
    """A workflow's current text, or the sample, for another slug."""
    text = workflow.current_version.yaml if workflow.current_version else SAMPLE
    return re.sub(r"^id:.*$", f"id: {slug}", text, count=1, flags=re.MULTILINE) if slug else text
