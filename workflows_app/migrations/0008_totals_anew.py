"""A run that failed counts as not passed now: what runs add up to is added up anew, by the next sweep."""

from typing import Any

from django.db import migrations


def forget(apps: Any, schema_editor: Any) -> None:
    apps.get_model("workflows_app", "RunTotals").objects.all().delete()


class Migration(migrations.Migration):
    dependencies = [
        ("workflows_app", "0007_run_totals"),
    ]

    operations = [migrations.RunPython(forget, forget)]
