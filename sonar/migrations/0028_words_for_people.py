"""What the tables of the admin are called: by the words of the pages. Nothing in them changes."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("sonar", "0027_purposes")]

    operations = [
        migrations.AlterModelOptions(
            name="annotation", options={"ordering": ["-starts_at"], "verbose_name": "note"}
        ),
        migrations.AlterModelOptions(
            name="leftover",
            options={
                "ordering": ["since"],
                "verbose_name": "file left behind",
                "verbose_name_plural": "files left behind",
            },
        ),
        migrations.AlterModelOptions(name="probe", options={"verbose_name": "test"}),
        migrations.AlterModelOptions(name="transfer", options={"verbose_name": "result"}),
    ]
