"""The four roles as groups. Their permissions follow from `access.ROLES` after every migrate."""

from django.db import migrations


def make_roles(apps, schema_editor):
    group = apps.get_model("auth", "Group")
    for role in ("viewer", "operator", "editor", "admin"):
        group.objects.get_or_create(name=role)


class Migration(migrations.Migration):
    dependencies = [("workflows_app", "0001_initial"), ("auth", "0012_alter_user_first_name_max_length")]

    operations = [migrations.RunPython(make_roles, migrations.RunPython.noop, elidable=False)]
