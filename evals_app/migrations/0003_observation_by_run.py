from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evals_app", "0002_eval_suites")]

    operations = [
        migrations.AddIndex(
            model_name="observation",
            index=models.Index(fields=["workflow", "run_number"], name="observation_by_run"),
        ),
    ]
