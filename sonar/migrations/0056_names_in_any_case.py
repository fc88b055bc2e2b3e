"""Each new name is compared with all names, whatever their case: an index finds them."""

from django.db import migrations, models
from django.db.models.functions import Upper


class Migration(migrations.Migration):
    dependencies = [("sonar", "0055_file_rows")]

    operations = [
        migrations.AddIndex(
            model_name="site", index=models.Index(Upper("name"), name="site_name_in_any_case")
        ),
        migrations.AddIndex(
            model_name="endpoint",
            index=models.Index(Upper("name"), name="endpoint_name_in_any_case"),
        ),
    ]
