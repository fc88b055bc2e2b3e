from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sonar', '0023_credentials_of_services'),
    ]

    operations = [
        migrations.AddField(
            model_name='transfer',
            name='upload',
            field=models.JSONField(help_text='How its worker sent the source file to the source before, and by what connection (sonar.movers.tcp_info); empty where it was there already.', null=True),
        ),
    ]
