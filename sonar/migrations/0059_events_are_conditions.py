"""Events are conditions, which are judged again from all results: what was found before goes."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("sonar", "0057_conditions")]

    operations = [
        migrations.DeleteModel("Change"),
        migrations.DeleteModel("ChangeSearch"),
        migrations.DeleteModel("Outage"),
    ]
