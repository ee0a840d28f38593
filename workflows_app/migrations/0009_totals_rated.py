"""The number of runs that count in a pass rate is named for that; its column keeps its name, which older processes use."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("workflows_app", "0008_totals_anew"),
    ]

    operations = [
        migrations.AlterField(
            "runtotals", "judged", models.PositiveIntegerField(db_column="judged", default=0)
        ),
        migrations.RenameField("runtotals", "judged", "rated"),
    ]
