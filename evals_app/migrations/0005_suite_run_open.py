from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evals_app", "0004_suite_run_begun")]

    operations = [
        migrations.AddIndex(
            model_name="evalsuiterun",
            index=models.Index(
                fields=["alive_at"], name="suite_run_open", condition=models.Q(("finished_at", None))
            ),
        ),
    ]
