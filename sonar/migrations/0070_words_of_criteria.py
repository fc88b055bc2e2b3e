"""The sentence on criteria sets without a criterion; the constraint in the database stays."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("sonar", "0069_names_of_tasks")]

    operations = [
        migrations.AlterConstraint(
            model_name="criteriaset",
            name="criteriaset_asks_for_something",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("least_mb_s__isnull", False),
                    ("least_success_percent__isnull", False),
                    _connector="OR",
                ),
                name="criteriaset_asks_for_something",
                violation_error_message="Enter a minimum rate or a minimum success rate.",
            ),
        ),
    ]
