"""Indexes that longer ones begin with go. By name, as SQLite would otherwise copy every observation."""

import django.db.models.deletion
from django.db import migrations, models

OLD = [
    ("evals_app_observation_workflow_id_70980829", "workflow_id"),
    ("evals_app_observation_run_id_51026176", "run_id"),
]


class Migration(migrations.Migration):
    dependencies = [
        ("evals_app", "0005_suite_run_open"),
        ("workflows_app", "0006_fewer_indexes"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f'DROP INDEX IF EXISTS "{name}"',
                    f'CREATE INDEX "{name}" ON "evals_app_observation" ("{column}")',
                )
                for name, column in OLD
            ],
            state_operations=[
                migrations.AlterField(
                    "observation",
                    "workflow",
                    models.ForeignKey(
                        to="workflows_app.workflow",
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="observations",
                        db_index=False,
                    ),
                ),
                migrations.AlterField(
                    "observation",
                    "run",
                    models.ForeignKey(
                        to="workflows_app.run",
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="observations",
                        db_index=False,
                    ),
                ),
            ],
        )
    ]
