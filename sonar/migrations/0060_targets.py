"""Conditions judge all tests since a change: `bad` of the newest `of` tests have no use any more.

Each size class has the time of its last assessment in Assessment, which EvaluationRun repeated.
"""

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sonar", "0059_events_are_conditions")]

    operations = [
        migrations.RemoveConstraint(
            model_name="expectation", name="expectation_tests_are_possible"
        ),
        migrations.RemoveField(model_name="expectation", name="bad"),
        migrations.RemoveField(model_name="expectation", name="of"),
        migrations.AlterField(
            model_name="expectation",
            name="above",
            field=models.FloatField(
                default=0.8,
                help_text="The statistic now / expected (stat=expectation) calls a link near its "
                "rate from `below` up to this part of it. Conditions do not use it.",
                validators=[MinValueValidator(0.05), MaxValueValidator(2)],
            ),
        ),
        migrations.DeleteModel("EvaluationRun"),
    ]
