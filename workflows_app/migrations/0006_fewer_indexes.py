"""Indexes that longer ones begin with go. By name, as SQLite would otherwise copy every run, node and event."""

import django.db.models.deletion
from django.db import migrations, models

OLD = [
    ("workflows_app_run_workflow_id_5693f4af", "workflows_app_run", "workflow_id"),
    ("workflows_app_run_version_id_f2bd0046", "workflows_app_run", "version_id"),
    ("workflows_app_runnode_run_id_e3076f02", "workflows_app_runnode", "run_id"),
    ("workflows_app_runevent_run_id_72ec01d8", "workflows_app_runevent", "run_id"),
]


def unindexed(to, on_delete, related_name):
    return models.ForeignKey(to=to, on_delete=on_delete, related_name=related_name, db_index=False)


class Migration(migrations.Migration):
    dependencies = [("workflows_app", "0005_api_token_name")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f'DROP INDEX IF EXISTS "{name}"',
                    f'CREATE INDEX "{name}" ON "{table}" ("{column}")',
                )
                for name, table, column in OLD
            ],
            state_operations=[
                migrations.AlterField(
                    "run",
                    "workflow",
                    unindexed("workflows_app.workflow", django.db.models.deletion.CASCADE, "runs"),
                ),
                migrations.AlterField(
                    "run",
                    "version",
                    unindexed("workflows_app.workflowversion", django.db.models.deletion.PROTECT, "runs"),
                ),
                migrations.AlterField(
                    "runnode",
                    "run",
                    unindexed("workflows_app.run", django.db.models.deletion.CASCADE, "nodes"),
                ),
                migrations.AlterField(
                    "runevent",
                    "run",
                    unindexed("workflows_app.run", django.db.models.deletion.CASCADE, "events"),
                ),
            ],
        )
    ]
