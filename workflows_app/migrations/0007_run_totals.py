"""What runs add up to is kept by the hour, so the index that the figures read is no longer needed."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workflows_app", "0006_fewer_indexes"),
    ]

    operations = [
        migrations.CreateModel(
            name="RunTotals",
            fields=[
                (
                    "slot",
                    models.IntegerField(help_text="Hours since 1970.", primary_key=True, serialize=False),
                ),
                ("runs", models.PositiveIntegerField(default=0)),
                ("passed", models.PositiveIntegerField(default=0)),
                ("judged", models.PositiveIntegerField(default=0)),
                ("scored", models.PositiveIntegerField(default=0)),
                ("score", models.FloatField(default=0.0)),
                ("priced", models.PositiveIntegerField(default=0)),
                ("cost_usd", models.FloatField(default=0.0)),
                (
                    "is_stale",
                    models.BooleanField(
                        default=False, help_text="A run of it changed since it was added up."
                    ),
                ),
                ("mark", models.UUIDField(help_text="Of the last such change.", null=True)),
            ],
            options={
                "verbose_name_plural": "run totals",
            },
        ),
        migrations.RemoveIndex(
            model_name="run",
            name="run_figures",
        ),
        migrations.AddIndex(
            model_name="runtotals",
            index=models.Index(condition=models.Q(("is_stale", True)), fields=["slot"], name="totals_stale"),
        ),
    ]
