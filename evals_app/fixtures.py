"""A run as an eval case: its inputs, and what each block answered as fixtures."""

from __future__ import annotations

from typing import Any

import yaml

from workflows_app.credentials import shown_inputs
from workflows_app.models import NodeStatus, Run


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as blocks, as a person would."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    # A block cannot hold trailing spaces or characters that YAML escapes; the library then quotes by itself.
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def case_yaml(run: Run) -> str:
    """The entry for `eval.cases` that repeats this run without calling any model."""
    nodes = run.nodes.filter(status=NodeStatus.COMPLETED).order_by("iteration", "attempt")
    fixtures = dict(nodes.exclude(node_id__contains=".").values_list("node_id", "output"))
    case: dict[str, Any] = {
        "id": f"run-{run.number}",
        "description": f"Taken from run #{run.number} of version {run.version.number}.",
        "inputs": shown_inputs(run),
        "fixtures": fixtures,
        "include_block_assertions": True,
    }
    return yaml.dump([case], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
