from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("evals_app", "0003_observation_by_run")]

    operations = [
        migrations.AddField(
            model_name="evalsuiterun",
            name="begun_at",
            field=models.DateTimeField(help_text="When a process took it; no other may then.", null=True),
        ),
    ]
