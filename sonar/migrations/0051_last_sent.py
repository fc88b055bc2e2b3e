"""How often messages are ordered is counted where no deletion of their subscription reaches."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sonar", "0050_exchanges")]

    operations = [
        migrations.CreateModel(
            name="LastSent",
            fields=[
                ("key", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
            ],
        ),
    ]
