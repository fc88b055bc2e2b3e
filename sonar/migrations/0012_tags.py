"""Free tags of sites and endpoints. What an older Sonar still writes meanwhile has none."""

from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models

from sonar.models.fields import validate_tags

RULE = "each is 1 to 40 letters, digits and . _ : -."


def tags(whose):
    return ArrayField(
        models.CharField(max_length=40, blank=True),
        blank=True,
        db_default=[],
        default=list,
        help_text=f"Free words that links are chosen by, {whose}: {RULE}",
        size=None,
        validators=[validate_tags],
    )


class Migration(migrations.Migration):
    dependencies = [("sonar", "0011_credentials_bound_to_hosts")]

    operations = [
        migrations.AddField("endpoint", "tags", tags("in addition to those of its site")),
        migrations.AddField("site", "tags", tags("for all endpoints of the site")),
    ]
