"""Names that sources use and nobody has assigned are unknown aliases; rights and logs keep them."""

from django.db import migrations, models

OLD, NEW = ("unknownname", "unknown name"), ("unknownalias", "unknown alias")


def rename_permissions(apps, old, new):
    """Keep the permissions of accounts and groups: `migrate` would add others by the new name."""
    permissions = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="sonar", codename__endswith=f"_{old[0]}"
    )
    for permission in permissions:
        permission.codename = permission.codename.replace(old[0], new[0])
        permission.name = permission.name.replace(old[1], new[1])
        permission.save()


class Migration(migrations.Migration):
    dependencies = [
        ("sonar", "0062_concurrent_tests"),
        ("auth", "0012_alter_user_first_name_max_length"),
    ]

    operations = [
        migrations.RunPython(
            lambda apps, _: rename_permissions(apps, OLD, NEW),
            lambda apps, _: rename_permissions(apps, NEW, OLD),
        ),
        migrations.RemoveConstraint("unknownname", "unknownname_is_told_once"),
        migrations.RenameModel("UnknownName", "UnknownAlias"),
        migrations.AlterModelOptions(
            "unknownalias",
            {
                "ordering": ["source", "kind", "name"],
                "verbose_name_plural": "unknown aliases",
            },
        ),
        migrations.AddConstraint(
            "unknownalias",
            models.UniqueConstraint(
                fields=["source", "kind", "key"], name="unknownalias_once_per_source"
            ),
        ),
        migrations.AlterField(
            "alias",
            "origin",
            models.CharField(
                default="hand",
                help_text="“hand” if a person assigned it, else the name of the source.",
                max_length=40,
            ),
        ),
        migrations.AlterField(
            "unknownalias",
            "example",
            models.CharField(
                blank=True, help_text="Where the source used it last.", max_length=200
            ),
        ),
        migrations.AlterConstraint(
            "alias",
            "alias_means_one_thing",
            models.UniqueConstraint(
                fields=["kind", "key"],
                name="alias_means_one_thing",
                violation_error_code="unique",
                violation_error_message="This alias is already assigned.",
            ),
        ),
        migrations.AlterConstraint(
            "alias",
            "alias_of_one_site_or_endpoint",
            models.CheckConstraint(
                condition=models.Q(site__isnull=False, endpoint__isnull=True)
                | models.Q(site__isnull=True, endpoint__isnull=False),
                name="alias_of_one_site_or_endpoint",
                violation_error_message="An alias belongs to a site or to an endpoint: choose "
                "exactly one.",
            ),
        ),
    ]
