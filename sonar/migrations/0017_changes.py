"""Changes of level, and what was searched for them. An older Sonar passes them by."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sonar', '0016_experiments'),
    ]

    operations = [
        migrations.CreateModel(
            name='ChangeSearch',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('searched_at', models.DateTimeField()),
                ('start', models.DateTimeField()),
                ('end', models.DateTimeField()),
                ('sequences', models.PositiveIntegerField(help_text='How many could have had a change.')),
                ('days', models.JSONField(default=dict)),
                ('method', models.PositiveSmallIntegerField()),
                ('size_class', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sonar.sizeclass')),
            ],
        ),
        migrations.CreateModel(
            name='Change',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('link', 'Link'), ('source', 'Source'), ('destination', 'Destination'), ('grid', 'Grid')], max_length=11)),
                ('at', models.DateTimeField()),
                ('earliest', models.DateTimeField()),
                ('latest', models.DateTimeField()),
                ('factor', models.FloatField()),
                ('low', models.FloatField()),
                ('high', models.FloatField()),
                ('before', models.FloatField(help_text='Of a link: bytes per second before.', null=True)),
                ('after', models.FloatField(help_text='Of a link: bytes per second since.', null=True)),
                ('ok_before', models.PositiveIntegerField(help_text='Successful results of the level before.')),
                ('ok_after', models.PositiveIntegerField(help_text='Successful results of the new level.')),
                ('links', models.PositiveIntegerField(help_text='How many links tell of it.')),
                ('chance', models.FloatField(help_text='How often noise alone gives such results one as clear.')),
                ('sure', models.BooleanField(help_text='Beyond chance among all that was looked at.')),
                ('found_at', models.DateTimeField(help_text='When it was first found.')),
                ('destination', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sonar.endpoint')),
                ('size_class', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sonar.sizeclass')),
                ('source', models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sonar.endpoint')),
            ],
            options={
                'indexes': [models.Index(fields=['-at', '-id'], name='change_newest_first')],
                'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('destination__isnull', False), ('kind', 'link'), ('source__isnull', False)), models.Q(('destination__isnull', True), ('kind', 'source'), ('source__isnull', False)), models.Q(('destination__isnull', False), ('kind', 'destination'), ('source__isnull', True)), models.Q(('destination__isnull', True), ('kind', 'grid'), ('source__isnull', True)), _connector='OR'), name='change_has_the_ends_of_its_kind'), models.CheckConstraint(condition=models.Q(('earliest__lte', models.F('at')), ('latest__gte', models.F('at'))), name='change_is_within_its_bounds')],
            },
        ),
    ]
