"""Help texts, labels, choices and sentences in plain English; nothing in the database changes."""

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import sonar.models.fields
import sonar.models.registry
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('sonar', '0071_scope_and_type'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterModelOptions(
            name='signoflife',
            options={'ordering': ['kind', 'name'], 'verbose_name': 'heartbeat'},
        ),
        migrations.AlterField(
            model_name='alias',
            name='name',
            field=models.CharField(help_text='The alias, exactly as the other service writes it.', max_length=255),
        ),
        migrations.AlterField(
            model_name='alias',
            name='origin',
            field=models.CharField(default='hand', help_text='Origin of the alias: “hand” if a person entered the alias, otherwise the name of its source.', max_length=40),
        ),
        migrations.AlterField(
            model_name='alltests',
            name='pause_reason',
            field=models.CharField(blank=True, db_default='', default='', help_text='Reason for the pause, shown to everyone.', max_length=200),
        ),
        migrations.AlterField(
            model_name='alltests',
            name='paused_since',
            field=models.DateTimeField(blank=True, help_text='Start of the pause, in UTC. Empty if tests are not paused.', null=True),
        ),
        migrations.AlterField(
            model_name='alltests',
            name='paused_until',
            field=models.DateTimeField(blank=True, help_text='End of the pause, in UTC. Empty means that tests are paused until someone resumes them.', null=True),
        ),
        migrations.AlterField(
            model_name='annotation',
            name='ends_at',
            field=models.DateTimeField(blank=True, help_text='End of the period, in UTC. Empty means no end.', null=True),
        ),
        migrations.AlterField(
            model_name='annotation',
            name='public',
            field=models.BooleanField(default=False, help_text='Whether the note is shown to all readers. Otherwise it is shown only to operators and to admins of its sites.'),
        ),
        migrations.AlterField(
            model_name='annotation',
            name='starts_at',
            field=models.DateTimeField(help_text='Start of the period that the note is about, in UTC.'),
        ),
        migrations.AlterField(
            model_name='assessedday',
            name='is_recorded',
            field=models.BooleanField(default=False, help_text='Whether the conditions of this day were stored after its last evaluation.'),
        ),
        migrations.AlterField(
            model_name='assessedday',
            name='until',
            field=models.DateTimeField(help_text='Time up to which tests were evaluated.'),
        ),
        migrations.AlterField(
            model_name='assessment',
            name='awake_since',
            field=models.DateTimeField(help_text='Time since which assessments have run without a gap.', null=True),
        ),
        migrations.AlterField(
            model_name='assessment',
            name='free_since',
            field=models.JSONField(default=dict, help_text='For each endpoint whose tests were recently blocked, the end of the block in Unix milliseconds, by endpoint id.'),
        ),
        migrations.AlterField(
            model_name='assessment',
            name='intervals',
            field=models.JSONField(default=dict, help_text='Test interval of each mesh for the size class in seconds, by mesh id.'),
        ),
        migrations.AlterField(
            model_name='circuit',
            name='error',
            field=models.TextField(help_text='Error of the last failed test, as shown to all readers.'),
        ),
        migrations.AlterField(
            model_name='circuit',
            name='last_at',
            field=models.DateTimeField(help_text='Time when the last failed test ended.'),
        ),
        migrations.AlterField(
            model_name='circuit',
            name='next_test_at',
            field=models.DateTimeField(help_text='Time of the next test while the circuit breaker is open. Empty if it is closed.', null=True),
        ),
        migrations.AlterField(
            model_name='circuit',
            name='since',
            field=models.DateTimeField(help_text='Time when the first of the consecutive failed tests began.'),
        ),
        migrations.AlterField(
            model_name='commissioningrecord',
            name='bytes',
            field=models.BigIntegerField(help_text='Total bytes that the successful tests moved.'),
        ),
        migrations.AlterField(
            model_name='commissioningrecord',
            name='found_at',
            field=models.DateTimeField(help_text='Time when Sonar found that the link had passed.'),
        ),
        migrations.AlterField(
            model_name='commissioningrecord',
            name='lost_at',
            field=models.DateTimeField(help_text='Full hour at which the link no longer met the criteria. Empty while it meets them.', null=True),
        ),
        migrations.AlterField(
            model_name='commissioningrecord',
            name='ok',
            field=models.PositiveIntegerField(help_text='Number of evaluated tests that succeeded.'),
        ),
        migrations.AlterField(
            model_name='commissioningrecord',
            name='passed_at',
            field=models.DateTimeField(help_text='Full hour at which the link passed: it met all criteria.'),
        ),
        migrations.AlterField(
            model_name='commissioningrecord',
            name='seconds',
            field=models.FloatField(help_text='Total duration of the successful tests, in seconds.'),
        ),
        migrations.AlterField(
            model_name='commissioningrecord',
            name='tests',
            field=models.PositiveIntegerField(help_text='Number of tests in the period that were evaluated.'),
        ),
        migrations.AlterField(
            model_name='condition',
            name='confirmed_at',
            field=models.DateTimeField(help_text='Start of the test that confirmed the condition. Empty while it is unconfirmed.', null=True),
        ),
        migrations.AlterField(
            model_name='condition',
            name='ended_at',
            field=models.DateTimeField(help_text='Time when the condition ended. Empty while it lasts.', null=True),
        ),
        migrations.AlterField(
            model_name='condition',
            name='links',
            field=models.PositiveIntegerField(help_text='Number of links that show the condition.'),
        ),
        migrations.AlterField(
            model_name='condition',
            name='of_links',
            field=models.PositiveIntegerField(help_text='Number of links of the affected object that were tested since the condition began.'),
        ),
        migrations.AlterField(
            model_name='condition',
            name='seen_at',
            field=models.DateTimeField(help_text='Time when Sonar first stored the condition.'),
        ),
        migrations.AlterField(
            model_name='condition',
            name='size_classes',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=80), help_text='Names of the affected size classes, smallest first.', size=None),
        ),
        migrations.AlterField(
            model_name='conditionlink',
            name='baseline',
            field=models.FloatField(help_text='Rate in bytes per second before the condition began. Empty if there were too few tests.', null=True),
        ),
        migrations.AlterField(
            model_name='conditionpart',
            name='confirmed_at',
            field=models.DateTimeField(help_text='Start of the test that confirmed the condition. Empty while it is unconfirmed.', null=True),
        ),
        migrations.AlterField(
            model_name='conditionpart',
            name='ended_at',
            field=models.DateTimeField(help_text='Time when the condition ended. Empty while it lasts.', null=True),
        ),
        migrations.AlterField(
            model_name='conditionpart',
            name='failed',
            field=models.PositiveIntegerField(help_text='Number of failed tests of the affected object since the condition began.'),
        ),
        migrations.AlterField(
            model_name='conditionpart',
            name='links',
            field=models.PositiveIntegerField(help_text='Number of links that show the condition.'),
        ),
        migrations.AlterField(
            model_name='conditionpart',
            name='members_digest',
            field=models.CharField(help_text='Digest of the affected links and their baselines, which shows whether they changed.', max_length=32),
        ),
        migrations.AlterField(
            model_name='conditionpart',
            name='of_links',
            field=models.PositiveIntegerField(help_text='Number of links of the affected object that were tested since the condition began.'),
        ),
        migrations.AlterField(
            model_name='conditionpart',
            name='shown_at',
            field=models.DateTimeField(help_text='Start of the test that first showed the condition.'),
        ),
        migrations.AlterField(
            model_name='conditionpart',
            name='tests',
            field=models.PositiveIntegerField(help_text='Number of tests of the affected object since the condition began.'),
        ),
        migrations.AlterField(
            model_name='credential',
            name='audience',
            field=models.CharField(blank=True, db_default='', default='', help_text='Only for client_credentials: audience of the tokens. Empty means the URL origin of the endpoint or service.', max_length=400, verbose_name='audience'),
        ),
        migrations.AlterField(
            model_name='credential',
            name='client_id',
            field=models.CharField(blank=True, db_default='', default='', help_text='Only for client_credentials: client ID that is registered at the issuer.', max_length=200, verbose_name='client ID'),
        ),
        migrations.AlterField(
            model_name='credential',
            name='hosts',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=255, validators=[sonar.models.registry.validate_host]), help_text='Hosts that the credential may be sent to, in lower case. Write host:port to allow only that port.', size=None),
        ),
        migrations.AlterField(
            model_name='credential',
            name='issuer',
            field=models.CharField(blank=True, db_default='', default='', help_text='Only for client_credentials: URL of the token issuer, https://host/path. The secret is sent only there.', max_length=400, verbose_name='issuer'),
        ),
        migrations.AlterField(
            model_name='credential',
            name='kind',
            field=models.CharField(choices=[('file', 'file: a bearer token, used as it is'), ('client_credentials', 'client_credentials: the secret of an OAuth2 client, to which an issuer gives tokens'), ('macaroon', 'macaroon: a token, or a certificate with its key, for which the endpoint itself gives macaroons'), ('x509', 'x509: a proxy certificate with its key')], db_default='file', default='file', help_text='Kind of secret, which decides how Sonar obtains a credential from it.', max_length=20),
        ),
        migrations.AlterField(
            model_name='credential',
            name='name',
            field=models.CharField(help_text='Name of the credential. A file with this name in SONAR_CREDENTIALS_DIR holds its secret, unless the secret was uploaded.', max_length=80, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9_-][A-Za-z0-9._-]*$', 'The name of a credential is made of letters, digits, dots, dashes and underscores. It must not begin with a dot, as it is also a file name.')]),
        ),
        migrations.AlterField(
            model_name='credential',
            name='path_prefix',
            field=models.CharField(blank=True, db_default='', default='', help_text='Only for client_credentials: prefix of endpoint paths that token scopes omit, such as /atlas. Empty if scopes contain the whole path.', max_length=200, verbose_name='path prefix'),
        ),
        migrations.AlterField(
            model_name='credential',
            name='scope',
            field=models.CharField(blank=True, db_default='', default='', help_text='Only for client_credentials of transfer services: scope of the tokens, such as fts.', max_length=200, verbose_name='scope'),
        ),
        migrations.AlterField(
            model_name='credential',
            name='to_data_hosts',
            field=models.BooleanField(db_default=False, default=False, help_text='Whether the credential is also sent to the declared data servers of an endpoint. It is sent if the server of the endpoint redirects there without another credential.', verbose_name='send to data servers'),
        ),
        migrations.AlterField(
            model_name='credential',
            name='uploaded_at',
            field=models.DateTimeField(blank=True, help_text='Time when the secret was uploaded on a page. Empty if it is in a file on the workers.', null=True, verbose_name='uploaded'),
        ),
        migrations.AlterField(
            model_name='credentialstate',
            name='expires_at',
            field=models.DateTimeField(help_text='Time when the present credential expires. Empty if unknown.', null=True),
        ),
        migrations.AlterField(
            model_name='credentialstate',
            name='holds',
            field=models.BooleanField(help_text='Whether tests wait until the credential works. If false, the present credential is still valid for a while.'),
        ),
        migrations.AlterField(
            model_name='credentialstate',
            name='mesh',
            field=models.ForeignKey(help_text='Mesh whose transfer service uses the credential. Empty if an endpoint uses it.', null=True, on_delete=django.db.models.deletion.CASCADE, to='sonar.mesh'),
        ),
        migrations.AlterField(
            model_name='credentialstate',
            name='sentence',
            field=models.TextField(help_text='Description of the problem, for operators.'),
        ),
        migrations.AlterField(
            model_name='criteriaset',
            name='destinations_filter',
            field=models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict, help_text='The same syntax as in the URL of the matrix: cloud=UK&label=DATADISK&tag=!tape. Endpoints that match later are included automatically.', verbose_name='filter for destinations'),
        ),
        migrations.AlterField(
            model_name='criteriaset',
            name='least_bytes',
            field=models.BigIntegerField(blank=True, help_text='Bytes that successful tests move in the period. A link needs this volume to pass, but not to stay passed. Empty means any volume.', null=True, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000000000000000)], verbose_name='minimum volume (bytes)'),
        ),
        migrations.AlterField(
            model_name='criteriaset',
            name='least_mb_s',
            field=models.FloatField(blank=True, help_text='Total bytes of successful tests divided by their total seconds. Empty means any rate.', null=True, validators=[django.core.validators.MinValueValidator(0.001), django.core.validators.MaxValueValidator(1000000)], verbose_name='minimum rate (MB/s)'),
        ),
        migrations.AlterField(
            model_name='criteriaset',
            name='least_success_percent',
            field=models.FloatField(blank=True, help_text='Percentage of the tests that succeed. Empty means any percentage.', null=True, validators=[django.core.validators.MinValueValidator(0.001), django.core.validators.MaxValueValidator(100)], verbose_name='minimum success rate (%)'),
        ),
        migrations.AlterField(
            model_name='criteriaset',
            name='least_tests',
            field=models.PositiveIntegerField(help_text='Minimum number of tests in the period. A link with fewer tests is not evaluated.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000000)]),
        ),
        migrations.AlterField(
            model_name='criteriaset',
            name='name',
            field=models.CharField(max_length=80, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9._-]*$', 'Use only letters, digits, dots, dashes and underscores. Begin with a letter or digit.')], verbose_name='name'),
        ),
        migrations.AlterField(
            model_name='criteriaset',
            name='period_hours',
            field=models.PositiveSmallIntegerField(help_text='Length of the evaluated period in hours: 24 for a day, 168 for a week.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(720)]),
        ),
        migrations.AlterField(
            model_name='criteriaset',
            name='sources_filter',
            field=models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict, help_text='The same syntax as in the URL of the matrix: cloud=UK&label=DATADISK&tag=!tape. Endpoints that match later are included automatically.', verbose_name='filter for sources'),
        ),
        migrations.AlterField(
            model_name='downtime',
            name='key',
            field=models.CharField(blank=True, db_default='', default='', editable=False, help_text='Primary key of the downtime at its origin. Empty if it was declared in Sonar.', max_length=100),
        ),
        migrations.AlterField(
            model_name='downtime',
            name='origin',
            field=models.CharField(choices=[('hand', 'Sonar'), ('gocdb', 'GOCDB'), ('osg', 'OSG Topology')], db_default='hand', default='hand', editable=False, help_text='Where the downtime was declared: in Sonar, GOCDB or OSG Topology.', max_length=5),
        ),
        migrations.AlterField(
            model_name='downtime',
            name='severity',
            field=models.CharField(choices=[('outage', 'outage: no test starts'), ('warning', 'warning: tests continue')], db_default='outage', default='outage', help_text='During an outage no test starts. A warning does not stop tests.', max_length=7),
        ),
        migrations.AlterField(
            model_name='downtime',
            name='url',
            field=models.CharField(blank=True, db_default='', default='', editable=False, help_text='URL of the page of the downtime at its origin. Empty if it has none.', max_length=500),
        ),
        migrations.AlterField(
            model_name='downtimesource',
            name='answered_at',
            field=models.DateTimeField(help_text='Time of the last request that the source answered correctly. Empty if there was none.', null=True),
        ),
        migrations.AlterField(
            model_name='downtimesource',
            name='asked_at',
            field=models.DateTimeField(help_text='Time of the last request to the source.'),
        ),
        migrations.AlterField(
            model_name='downtimesource',
            name='downtimes',
            field=models.PositiveIntegerField(default=0, help_text='Number of downtimes in the last correct response.'),
        ),
        migrations.AlterField(
            model_name='downtimesource',
            name='error',
            field=models.CharField(blank=True, help_text='Error of the last request to the source. Empty if it succeeded.', max_length=500),
        ),
        migrations.AlterField(
            model_name='downtimesource',
            name='of_endpoints',
            field=models.PositiveIntegerField(default=0, help_text='Number of downtimes in the last correct response that affect endpoints in use.'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='base_url',
            field=models.CharField(help_text='Base URL of the storage area. Sonar writes and deletes files only in sonar/ below it.', max_length=400, unique=True, validators=[django.core.validators.RegexValidator('^(https?|davs?|root|xroot|gsiftp|ftp|iperf3|fake)://[^/@?#\\s]+(/[^@?#\\s]*)?$', 'Enter a base URL as scheme://host[:port]/path, without user, password or query. Its scheme must be http, https, dav, davs, root, xroot, gsiftp, ftp, iperf3 or fake.')], verbose_name='base URL'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='budget_bytes_per_day',
            field=models.BigIntegerField(blank=True, help_text='Maximum number of bytes that tests send and receive at the endpoint per UTC day. Empty means no limit.', null=True, validators=[django.core.validators.MinValueValidator(1)]),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='credential',
            field=models.ForeignKey(blank=True, help_text='Credential with which Sonar reads, writes and deletes files at the endpoint. It is not sent to other endpoints.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='endpoints', to='sonar.credential'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='credential_lent',
            field=models.ForeignKey(blank=True, help_text='Credential that is delegated to the other endpoint of a third-party copy. It should be read-only.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='lending_endpoints', to='sonar.credential'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='data_hosts',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=255, validators=[sonar.models.registry.validate_data_host]), blank=True, db_default=[], default=list, help_text='Data servers to which the server can redirect tests, such as st-048.example.org, st-*.example.org:8443 or 192.0.2.0/24:20000-25000.', size=100),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='enabled',
            field=models.BooleanField(db_default=True, default=True, help_text='Tests of its links start only while the endpoint is enabled. An endpoint check is always possible.'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='inbound_cap',
            field=models.PositiveIntegerField(default=2, help_text='Maximum number of concurrent test transfers to the endpoint.', validators=[django.core.validators.MinValueValidator(1)]),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='label',
            field=models.CharField(blank=True, help_text='Label of the storage area, such as DATADISK.', max_length=40),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='lend_credential',
            field=models.BooleanField(default=False, help_text='Whether `credential` is delegated to the other endpoint of a third-party copy if no separate delegated credential is set.'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='name',
            field=models.CharField(max_length=80, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9._-]*$', 'Use only letters, digits, dots, dashes and underscores. Begin with a letter or digit.')], verbose_name='name'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='outbound_cap',
            field=models.PositiveIntegerField(default=2, help_text='Maximum number of concurrent test transfers from the endpoint.', validators=[django.core.validators.MinValueValidator(1)]),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='pause_reason',
            field=models.CharField(blank=True, db_default='', default='', help_text='Reason for the pause, shown to everyone.', max_length=200),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='paused_since',
            field=models.DateTimeField(blank=True, help_text='Start of the pause, in UTC. Empty if tests are not paused.', null=True),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='paused_until',
            field=models.DateTimeField(blank=True, help_text='End of the pause, in UTC. Empty means that tests are paused until someone resumes them.', null=True),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='simulated',
            field=models.BooleanField(default=False, help_text='Whether the endpoint is a node of the sandbox. Its rates are simulated and marked as such.'),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='software',
            field=models.CharField(blank=True, help_text='Server software, such as XRootD 5.5.3.', max_length=80),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='tags',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(blank=True, max_length=40), blank=True, db_default=[], default=list, help_text='Tags to filter links by, in addition to the tags of its site. Each has 1 to 40 letters, digits and . _ : -.', size=None, validators=[sonar.models.fields.validate_tags]),
        ),
        migrations.AlterField(
            model_name='endpoint',
            name='vantage',
            field=models.CharField(blank=True, db_default='', default='', help_text='Vantage point whose workers can reach the endpoint. Empty if all workers can.', max_length=40, validators=[django.core.validators.RegexValidator('^[a-z0-9-]+\\Z', 'A vantage point has 1 to 40 lower-case letters, digits and dashes, like cern.')]),
        ),
        migrations.AlterField(
            model_name='endpointcheck',
            name='checked',
            field=models.JSONField(db_default=models.Value({}, models.JSONField()), default=dict, help_text='Digests of the settings that the check depended on when it ran.'),
        ),
        migrations.AlterField(
            model_name='endpointcheck',
            name='requested_by',
            field=models.ForeignKey(help_text='Account that requested the check. Empty if a command did.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='endpointcheck',
            name='run',
            field=models.UUIDField(default=uuid.uuid4, help_text='Unique id of the check, which is part of the name of its test file.', unique=True),
        ),
        migrations.AlterField(
            model_name='filerow',
            name='kind',
            field=models.CharField(help_text='Section of the registry file.', max_length=20),
        ),
        migrations.AlterField(
            model_name='flow',
            name='ended_at',
            field=models.DateTimeField(help_text='Time when the connection ended. Empty if it is not known to have ended.', null=True),
        ),
        migrations.AlterField(
            model_name='flow',
            name='received_bytes',
            field=models.BigIntegerField(help_text='Bytes that the source received, as it reported.', null=True),
        ),
        migrations.AlterField(
            model_name='flow',
            name='reporter',
            field=models.GenericIPAddressField(help_text='Address of the host that sent the report.'),
        ),
        migrations.AlterField(
            model_name='flow',
            name='sent_bytes',
            field=models.BigIntegerField(help_text='Bytes that the source sent, as it reported.', null=True),
        ),
        migrations.AlterField(
            model_name='flow',
            name='tcp',
            field=models.JSONField(default=dict, help_text='TCP statistics of the connection, with the names that Linux uses.'),
        ),
        migrations.AlterField(
            model_name='heldlevel',
            name='rate',
            field=models.FloatField(help_text='Baseline rate of the link, in bytes per second.'),
        ),
        migrations.AlterField(
            model_name='heldlevel',
            name='until',
            field=models.DateTimeField(help_text='Time until which the baseline is frozen. Empty if it is frozen until its incident is closed.', null=True),
        ),
        migrations.AlterField(
            model_name='historyentry',
            name='at',
            field=models.DateTimeField(help_text='Time when the change was made.'),
        ),
        migrations.AlterField(
            model_name='historyentry',
            name='key',
            field=models.BigIntegerField(help_text='Id of the changed object among the objects of its kind.'),
        ),
        migrations.AlterField(
            model_name='historyentry',
            name='name',
            field=models.TextField(help_text='Name of the changed object at the time of the change.'),
        ),
        migrations.AlterField(
            model_name='historyentry',
            name='site',
            field=models.BigIntegerField(help_text='Id of the site that the changed object belonged to. Empty if it had none.', null=True),
        ),
        migrations.AlterField(
            model_name='historyentry',
            name='token',
            field=models.TextField(help_text='Name of the API token that was used. Empty if there was none.'),
        ),
        migrations.AlterField(
            model_name='historyentry',
            name='who',
            field=models.TextField(help_text='Account or process that made the change. Empty if no user was logged in.'),
        ),
        migrations.AlterField(
            model_name='incident',
            name='began_at',
            field=models.DateTimeField(help_text='Time when the problem most likely began.'),
        ),
        migrations.AlterField(
            model_name='incident',
            name='cause',
            field=models.ForeignKey(help_text='Condition that the incident follows. Empty for older incidents.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='incidents', to='sonar.condition'),
        ),
        migrations.AlterField(
            model_name='incident',
            name='clear_since',
            field=models.DateTimeField(help_text='Time since which the problem has not been seen. Empty while it lasts.', null=True),
        ),
        migrations.AlterField(
            model_name='incident',
            name='factor',
            field=models.FloatField(help_text='Rate since the problem began divided by the baseline. Empty if no rate is known.', null=True),
        ),
        migrations.AlterField(
            model_name='incident',
            name='links',
            field=models.PositiveIntegerField(help_text='Number of links that show the problem.'),
        ),
        migrations.AlterField(
            model_name='incident',
            name='of_links',
            field=models.PositiveIntegerField(help_text='Number of links of the affected object that were tested since the problem began.'),
        ),
        migrations.AlterField(
            model_name='incident',
            name='opened_at',
            field=models.DateTimeField(help_text='Time when Sonar opened the incident.'),
        ),
        migrations.AlterField(
            model_name='incident',
            name='sizes',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=80), help_text='Names of the affected size classes.', size=None),
        ),
        migrations.AlterField(
            model_name='incidentevent',
            name='type',
            field=models.CharField(choices=[('opened', 'Opened'), ('grew', 'Grew'), ('shrank', 'Shrank'), ('worse', 'Worse'), ('better', 'Better'), ('cause', 'cause changed'), ('merged', 'Merged'), ('closed', 'Closed'), ('reopened', 'Reopened'), ('acknowledged', 'Acknowledged'), ('assigned', 'Assigned'), ('muted', 'Muted'), ('unmuted', 'Unmuted'), ('note', 'Note'), ('accepted', 'Accepted')], max_length=12),
        ),
        migrations.AlterField(
            model_name='incidentlink',
            name='baseline',
            field=models.FloatField(help_text='Baseline rate in bytes per second. Empty if unknown.', null=True),
        ),
        migrations.AlterField(
            model_name='incidentlink',
            name='rate',
            field=models.FloatField(help_text='Rate of the newest tests at that time, in bytes per second.', null=True),
        ),
        migrations.AlterField(
            model_name='leftover',
            name='path',
            field=models.CharField(help_text='Path of the file below the base URL of the endpoint.', max_length=200),
        ),
        migrations.AlterField(
            model_name='leftover',
            name='remote_id',
            field=models.CharField(blank=True, db_default='', help_text='Job of a transfer service that may still write the file. Empty if none is known.', max_length=100),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='bytes_per_hour',
            field=models.BigIntegerField(blank=True, help_text='Maximum number of bytes that tests of the mesh move per hour. Empty means no limit.', null=True, validators=[django.core.validators.MinValueValidator(1)]),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='destinations',
            field=models.ManyToManyField(blank=True, help_text='Endpoints that the mesh tests. If none are chosen, all endpoints are tested.', related_name='+', to='sonar.endpoint'),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='destinations_filter',
            field=models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict, help_text='The same syntax as in the URL of the matrix: cloud=UK&label=DATADISK&tag=!tape. Endpoints that match later are included automatically.', verbose_name='filter for destinations'),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='name',
            field=models.CharField(max_length=80, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9._-]*$', 'Use only letters, digits, dots, dashes and underscores. Begin with a letter or digit.')], verbose_name='name'),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='priority',
            field=models.PositiveSmallIntegerField(default=5, help_text='If limits do not allow all due tests to start, tests of a higher priority start first.'),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='quiet_from',
            field=models.TimeField(blank=True, help_text='Start of the quiet hours, in UTC. Empty means no quiet hours.', null=True),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='quiet_until',
            field=models.TimeField(blank=True, help_text='End of the quiet hours, in UTC. It can be after midnight.', null=True),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='scitag',
            field=models.PositiveIntegerField(blank=True, help_text='Flow label of the transfers as experiment/activity (scitags.org), such as 2/11. Only for transfer tools that can send one. Empty means no flow label.', null=True, validators=[django.core.validators.MinValueValidator(65), django.core.validators.MaxValueValidator(65535)]),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='service',
            field=models.CharField(blank=True, db_default='', default='', help_text='URL of the transfer service, for transfer tools that use one. The service receives the delegated credentials of both endpoints.', max_length=400, validators=[django.core.validators.RegexValidator('^https?://[^/@?#\\s]+(/[^@?#\\s]*)?$', 'The URL of a service is https://host[:port]/path, without user, password or query.')]),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='service_credential',
            field=models.ForeignKey(blank=True, help_text='Credential with which Sonar authenticates to the transfer service. It is sent only there.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='meshes', to='sonar.credential'),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='sources',
            field=models.ManyToManyField(blank=True, help_text='Endpoints that the mesh tests. If none are chosen, all endpoints are tested.', related_name='+', to='sonar.endpoint'),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='sources_filter',
            field=models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict, help_text='The same syntax as in the URL of the matrix: cloud=UK&label=DATADISK&tag=!tape. Endpoints that match later are included automatically.', verbose_name='filter for sources'),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='tcp_buffer_bytes',
            field=models.PositiveIntegerField(blank=True, help_text='Size of the TCP buffer in bytes, for transfer tools that can set it. Empty means that the servers choose.', null=True, verbose_name='TCP buffer (bytes)'),
        ),
        migrations.AlterField(
            model_name='mesh',
            name='vantage',
            field=models.CharField(blank=True, db_default='', default='', help_text='Vantage point whose workers run the tests, unless an endpoint names another one.', max_length=40, validators=[django.core.validators.RegexValidator('^[a-z0-9-]+\\Z', 'A vantage point has 1 to 40 lower-case letters, digits and dashes, like cern.')]),
        ),
        migrations.AlterField(
            model_name='networkresult',
            name='bytes',
            field=models.BigIntegerField(help_text='Number of bytes that are known to have arrived.'),
        ),
        migrations.AlterField(
            model_name='networkresult',
            name='max_cwnd_bytes',
            field=models.BigIntegerField(help_text='Largest congestion window of a stream, in bytes. Empty if unknown.', null=True),
        ),
        migrations.AlterField(
            model_name='networkresult',
            name='max_receive_window_bytes',
            field=models.BigIntegerField(help_text='Largest TCP window that the receiver offered a stream, in bytes. Empty if unknown.', null=True),
        ),
        migrations.AlterField(
            model_name='networkresult',
            name='mode',
            field=models.CharField(choices=[('pull', 'pull: the destination fetches'), ('push', 'push: the source sends')], help_text='Where the worker ran: push at the source, pull at the destination.', max_length=4),
        ),
        migrations.AlterField(
            model_name='networkresult',
            name='retransmits',
            field=models.BigIntegerField(help_text='Number of TCP segments that were retransmitted. Empty if unknown.', null=True),
        ),
        migrations.AlterField(
            model_name='networkresult',
            name='samples',
            field=models.JSONField(default=list, help_text='Progress samples: pairs of elapsed seconds and bytes moved so far.'),
        ),
        migrations.AlterField(
            model_name='networkresult',
            name='seconds',
            field=models.FloatField(help_text='Seconds during which the bytes arrived, by the clock of the tool.'),
        ),
        migrations.AlterField(
            model_name='networkresult',
            name='state',
            field=models.CharField(choices=[('done', 'Done'), ('failed', 'Failed'), ('lost', 'lost: the worker stopped')], max_length=6),
        ),
        migrations.AlterField(
            model_name='networkresult',
            name='tcp_buffer_bytes',
            field=models.PositiveIntegerField(help_text='Size of the TCP buffer that was set, in bytes. Empty if the kernels chose it.', null=True),
        ),
        migrations.AlterField(
            model_name='notification',
            name='message',
            field=models.UUIDField(help_text='Id of the message that contained the notification. Empty before it is sent.', null=True),
        ),
        migrations.AlterField(
            model_name='notification',
            name='together',
            field=models.BooleanField(default=False, help_text='Whether the notification is combined with others into one message.'),
        ),
        migrations.AlterField(
            model_name='probe',
            name='cancelled_by',
            field=models.CharField(blank=True, db_default='', default='', help_text='User who cancelled the running test, as shown to all readers. Its worker then ends it.', max_length=100),
        ),
        migrations.AlterField(
            model_name='probe',
            name='queued_at',
            field=models.DateTimeField(help_text='Time when the test was queued after waiting. Empty if it did not have to wait.', null=True),
        ),
        migrations.AlterField(
            model_name='probe',
            name='runs',
            field=models.PositiveIntegerField(default=0, help_text='Number of times that the test was started. Each run uses different file names.'),
        ),
        migrations.AlterField(
            model_name='probe',
            name='sent_at',
            field=models.DateTimeField(help_text='Time when the test was last put in the queue.'),
        ),
        migrations.AlterField(
            model_name='probe',
            name='state',
            field=models.CharField(choices=[('waiting', 'waiting: requested, but limits do not allow it to start yet'), ('queued', 'Queued'), ('running', 'Running')], default='queued', max_length=7),
        ),
        migrations.AlterField(
            model_name='probe',
            name='waits_because',
            field=models.CharField(blank=True, help_text='Reason why the test waits, visible to all readers.', max_length=300),
        ),
        migrations.AlterField(
            model_name='profile',
            name='clock',
            field=models.CharField(blank=True, choices=[('request', 'from request to result'), ('tool', 'from the start of the program to the end of the copy'), ('service', 'as reported by the service, without the time in its queue')], db_default='', help_text='Which program measured the duration, and between which two events. Empty if unknown.', max_length=7),
        ),
        migrations.AlterField(
            model_name='profile',
            name='concurrent',
            field=models.PositiveSmallIntegerField(help_text='Whether other tests ran at the source or destination at the same time: 0 for no, 1 for yes. Empty if not recorded.', null=True),
        ),
        migrations.AlterField(
            model_name='profile',
            name='purpose',
            field=models.CharField(blank=True, choices=[('scheduled', 'Scheduled'), ('ordered', 'Ordered'), ('sweep', 'Sweep')], db_default='', help_text='Why the test was made. Empty if an import does not state it.', max_length=10),
        ),
        migrations.AlterField(
            model_name='profile',
            name='streams',
            field=models.PositiveSmallIntegerField(default=1, help_text='Requested number of streams.'),
        ),
        migrations.AlterField(
            model_name='profile',
            name='streams_used',
            field=models.PositiveSmallIntegerField(help_text='Actual number of streams. Empty if unknown.', null=True),
        ),
        migrations.AlterField(
            model_name='proposal',
            name='places',
            field=models.TextField(help_text='Files and URLs that were read, one per line.'),
        ),
        migrations.AlterField(
            model_name='refusedredirect',
            name='server',
            field=models.CharField(help_text='Host and port of the server.', max_length=255),
        ),
        migrations.AlterField(
            model_name='schedule',
            name='skipped_because',
            field=models.CharField(blank=True, help_text='Name of the reason why the last due test did not start. Empty if it started.', max_length=12),
        ),
        migrations.AlterField(
            model_name='signoflife',
            name='clock_ahead_seconds',
            field=models.FloatField(db_default=0.0, default=0.0, help_text='Seconds by which the clock of the process was ahead of that of the database. Negative if it lagged.'),
        ),
        migrations.AlterField(
            model_name='signoflife',
            name='every_seconds',
            field=models.PositiveIntegerField(help_text='Interval between heartbeats, in seconds.'),
        ),
        migrations.AlterField(
            model_name='signoflife',
            name='seen_at',
            field=models.DateTimeField(help_text='Time of the last heartbeat, by the clock of the database.'),
        ),
        migrations.AlterField(
            model_name='site',
            name='admins',
            field=models.ManyToManyField(blank=True, help_text='Accounts that can run and pause tests, declare downtimes and add notes for this site.', related_name='administered_sites', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='site',
            name='cloud',
            field=models.CharField(blank=True, help_text='Region (cloud) that the site belongs to, such as UK or DE.', max_length=40),
        ),
        migrations.AlterField(
            model_name='site',
            name='country',
            field=models.CharField(blank=True, max_length=2, validators=[django.core.validators.RegexValidator('^[A-Z]{2}$', 'Enter a country as two capital letters (ISO 3166), such as GB.')]),
        ),
        migrations.AlterField(
            model_name='site',
            name='name',
            field=models.CharField(max_length=80, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9._-]*$', 'Use only letters, digits, dots, dashes and underscores. Begin with a letter or digit.')], verbose_name='name'),
        ),
        migrations.AlterField(
            model_name='site',
            name='pause_reason',
            field=models.CharField(blank=True, db_default='', default='', help_text='Reason for the pause, shown to everyone.', max_length=200),
        ),
        migrations.AlterField(
            model_name='site',
            name='paused_since',
            field=models.DateTimeField(blank=True, help_text='Start of the pause, in UTC. Empty if tests are not paused.', null=True),
        ),
        migrations.AlterField(
            model_name='site',
            name='paused_until',
            field=models.DateTimeField(blank=True, help_text='End of the pause, in UTC. Empty means that tests are paused until someone resumes them.', null=True),
        ),
        migrations.AlterField(
            model_name='site',
            name='quiet_from',
            field=models.TimeField(blank=True, help_text='Start of the quiet hours, in UTC. Empty means no quiet hours.', null=True),
        ),
        migrations.AlterField(
            model_name='site',
            name='quiet_until',
            field=models.TimeField(blank=True, help_text='End of the quiet hours, in UTC. It can be after midnight.', null=True),
        ),
        migrations.AlterField(
            model_name='site',
            name='tags',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(blank=True, max_length=40), blank=True, db_default=[], default=list, help_text='Tags to filter links by, for all endpoints of the site. Each has 1 to 40 letters, digits and . _ : -.', size=None, validators=[sonar.models.fields.validate_tags]),
        ),
        migrations.AlterField(
            model_name='site',
            name='tier',
            field=models.PositiveSmallIntegerField(default=2, help_text='WLCG tier of the site, from 0 to 3.', validators=[django.core.validators.MaxValueValidator(3)]),
        ),
        migrations.AlterField(
            model_name='sizeclass',
            name='from_bytes',
            field=models.BigIntegerField(help_text='Smallest file size in bytes that belongs to the size class.', validators=[django.core.validators.MinValueValidator(0)]),
        ),
        migrations.AlterField(
            model_name='sizeclass',
            name='name',
            field=models.CharField(max_length=80, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9._-]*$', 'Use only letters, digits, dots, dashes and underscores. Begin with a letter or digit.')], verbose_name='name'),
        ),
        migrations.AlterField(
            model_name='sizeclass',
            name='test_bytes',
            field=models.BigIntegerField(help_text='Size of a test file in bytes, within the range of the size class.', validators=[django.core.validators.MinValueValidator(1)]),
        ),
        migrations.AlterField(
            model_name='sizeclass',
            name='timeout_seconds',
            field=models.PositiveIntegerField(default=3600, help_text='Maximum duration of a test in seconds. A test that takes longer counts as failed.', validators=[django.core.validators.MinValueValidator(1)]),
        ),
        migrations.AlterField(
            model_name='subscription',
            name='cap',
            field=models.PositiveSmallIntegerField(default=10, help_text='Maximum number of messages per hour. Further notifications are combined into one message.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(1000)]),
        ),
        migrations.AlterField(
            model_name='subscription',
            name='digest_hour',
            field=models.PositiveSmallIntegerField(blank=True, help_text='Hour of the day in UTC at which one message is sent. Empty means one message per incident.', null=True, validators=[django.core.validators.MaxValueValidator(23)]),
        ),
        migrations.AlterField(
            model_name='subscription',
            name='incident_scopes',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=11), blank=True, default=list, help_text='Incident scopes that match. Empty means all.', size=None),
        ),
        migrations.AlterField(
            model_name='subscription',
            name='incident_types',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=7), blank=True, default=list, help_text='Incident types that match. Empty means all.', size=None),
        ),
        migrations.AlterField(
            model_name='subscription',
            name='quiet_from',
            field=models.TimeField(blank=True, help_text='Start of the quiet hours, in UTC. Empty means no quiet hours.', null=True),
        ),
        migrations.AlterField(
            model_name='subscription',
            name='quiet_until',
            field=models.TimeField(blank=True, help_text='End of the quiet hours, in UTC. It can be after midnight.', null=True),
        ),
        migrations.AlterField(
            model_name='sweepstep',
            name='value',
            field=models.CharField(help_text='Value of the varied setting, such as 4, large or push.', max_length=40),
        ),
        migrations.AlterField(
            model_name='target',
            name='above',
            field=models.FloatField(default=0.8, help_text='Upper limit of the rate that counts as near target, as a fraction of the target. Only the statistic rate / target uses it; incidents do not depend on it.', validators=[django.core.validators.MinValueValidator(0.05), django.core.validators.MaxValueValidator(2)]),
        ),
        migrations.AlterField(
            model_name='target',
            name='below',
            field=models.FloatField(default=0.6666666666666666, help_text='Fraction of the minimum rate or baseline of a link below which it is slow.', validators=[django.core.validators.MinValueValidator(0.05), django.core.validators.MaxValueValidator(1)]),
        ),
        migrations.AlterField(
            model_name='target',
            name='destinations_filter',
            field=models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict, help_text='The same syntax as in the URL of the matrix: cloud=UK&label=DATADISK&tag=!tape. Endpoints that match later are included automatically.', verbose_name='filter for destinations'),
        ),
        migrations.AlterField(
            model_name='target',
            name='floor_mb_s',
            field=models.FloatField(blank=True, help_text='Minimum rate in MB/s. Empty means that the baseline of each link is used.', null=True, validators=[django.core.validators.MinValueValidator(0.001), django.core.validators.MaxValueValidator(1000000.0)], verbose_name='minimum rate (MB/s)'),
        ),
        migrations.AlterField(
            model_name='target',
            name='mesh',
            field=models.ForeignKey(blank=True, help_text='Mesh whose links the target applies to. Empty means links of any mesh or of none.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sonar.mesh'),
        ),
        migrations.AlterField(
            model_name='target',
            name='name',
            field=models.CharField(max_length=80, unique=True, validators=[django.core.validators.RegexValidator('^[A-Za-z0-9][A-Za-z0-9._-]*$', 'Use only letters, digits, dots, dashes and underscores. Begin with a letter or digit.')], verbose_name='name'),
        ),
        migrations.AlterField(
            model_name='target',
            name='site',
            field=models.ForeignKey(blank=True, help_text='Site whose links, in both directions, the target applies to. Empty means all sites.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sonar.site'),
        ),
        migrations.AlterField(
            model_name='target',
            name='size_class',
            field=models.ForeignKey(blank=True, help_text='Size class that the target applies to. Empty means all size classes.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='sonar.sizeclass'),
        ),
        migrations.AlterField(
            model_name='target',
            name='sources_filter',
            field=models.JSONField(blank=True, db_default=models.Value({}, models.JSONField()), default=dict, help_text='The same syntax as in the URL of the matrix: cloud=UK&label=DATADISK&tag=!tape. Endpoints that match later are included automatically.', verbose_name='filter for sources'),
        ),
        migrations.AlterField(
            model_name='token',
            name='name',
            field=models.CharField(help_text='Name of the token, for example cron-at-ral.', max_length=80),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='bytes',
            field=models.BigIntegerField(help_text='Size of the file in bytes, whether it arrived or not.'),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='checksum_seconds',
            field=models.FloatField(help_text='Seconds spent verifying the checksum at the destination.', null=True),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='data_server',
            field=models.CharField(blank=True, db_default='', help_text='Host and port of the data server that moved the bytes. Empty if unknown.', max_length=260),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='moved_bytes',
            field=models.BigIntegerField(help_text='Number of bytes that are known to have arrived. Empty if unknown.', null=True),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='prepare_seconds',
            field=models.FloatField(help_text='Seconds of preparation before the transfer itself began.', null=True),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='queue_seconds',
            field=models.FloatField(help_text='Seconds in the queue of the transfer service before the transfer began.', null=True),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='redirect_seconds',
            field=models.FloatField(help_text='Seconds until a redirector had found a data server.', null=True),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='remote_id',
            field=models.CharField(blank=True, db_default='', help_text='Id of the transfer at the transfer service.', max_length=100),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='samples',
            field=models.JSONField(default=list, help_text='Progress samples: pairs of elapsed seconds and bytes moved so far.'),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='scitag',
            field=models.PositiveIntegerField(help_text='Flow label that the packets carried (experiment and activity). Empty if none.', null=True),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='seconds',
            field=models.FloatField(help_text='Duration of the whole transfer in seconds, as seen by its requester.'),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='state',
            field=models.CharField(choices=[('done', 'Done'), ('failed', 'Failed'), ('lost', 'lost: the worker stopped')], max_length=6),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='tcp_buffer_used_bytes',
            field=models.BigIntegerField(help_text='Size of the TCP buffer that was used, in bytes. Empty if unknown.', null=True),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='transfer_seconds',
            field=models.FloatField(help_text='Seconds during which bytes moved, as the transfer tool or service reported.', null=True),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='upload',
            field=models.JSONField(help_text='How the worker uploaded the test file to the source before the transfer, and over which connection. Empty if the file was already there.', null=True),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='verified',
            field=models.BooleanField(help_text='Whether the checksums at source and destination agree. Empty if unknown.', null=True),
        ),
        migrations.AlterField(
            model_name='transfer',
            name='verified_note',
            field=models.TextField(blank=True, db_default='', help_text='Why the checksum was not verified.'),
        ),
        migrations.AlterField(
            model_name='unknownalias',
            name='dismissed',
            field=models.BooleanField(db_default=models.Value(False), default=False, help_text='Whether the alias is dismissed: it names something that Sonar does not test.'),
        ),
        migrations.AlterField(
            model_name='unknownalias',
            name='example',
            field=models.CharField(blank=True, help_text='Place where the source last used the alias.', max_length=200),
        ),
        migrations.AlterField(
            model_name='unknownalias',
            name='source',
            field=models.CharField(help_text='Source that uses the unknown alias.', max_length=40),
        ),
        migrations.AlterField(
            model_name='unknownalias',
            name='times',
            field=models.PositiveIntegerField(default=1, help_text='Number of times that the source used the alias.'),
        ),
        migrations.AlterField(
            model_name='uploadedsecret',
            name='expires_at',
            field=models.DateTimeField(help_text='Time when the secret expires, as stated in it. Empty if it states none.', null=True),
        ),
        migrations.AlterConstraint(
            model_name='alltests',
            name='alltests_pause_has_a_reason',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('pause_reason', ''), ('paused_since__isnull', True), ('paused_until__isnull', True)), models.Q(('paused_since__isnull', False), models.Q(('pause_reason', ''), _negated=True)), _connector='OR'), name='alltests_pause_has_a_reason', violation_error_message='A pause needs a start and a reason. To end a pause, clear its start, end and reason.'),
        ),
        migrations.AlterConstraint(
            model_name='annotation',
            name='annotation_of_one_site_or_link',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('destination__isnull', True), ('site__isnull', False), ('source__isnull', True)), models.Q(('destination__isnull', False), ('site__isnull', True), ('source__isnull', False), models.Q(('source', models.F('destination')), _negated=True)), _connector='OR'), name='annotation_of_one_site_or_link', violation_error_message='A note needs a site, or the source and destination of a link.'),
        ),
        migrations.AlterConstraint(
            model_name='credential',
            name='credential_has_a_host',
            constraint=models.CheckConstraint(condition=models.Q(('hosts__len__gte', 1)), name='credential_has_a_host', violation_error_message='A credential must list at least one host.'),
        ),
        migrations.AlterConstraint(
            model_name='downtime',
            name='downtime_of_one_site_or_endpoint',
            constraint=models.CheckConstraint(condition=models.Q(('site__isnull', True), ('endpoint__isnull', True), _connector='XOR'), name='downtime_of_one_site_or_endpoint', violation_error_message='A downtime affects either a site or an endpoint: choose exactly one.'),
        ),
        migrations.AlterConstraint(
            model_name='endpoint',
            name='endpoint_id_has_16_bits',
            constraint=models.CheckConstraint(condition=models.Q(('id__lte', 65535)), name='endpoint_id_has_16_bits', violation_error_message='Sonar can register at most 65535 endpoints, including retired ones.'),
        ),
        migrations.AlterConstraint(
            model_name='endpoint',
            name='endpoint_pause_has_a_reason',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('pause_reason', ''), ('paused_since__isnull', True), ('paused_until__isnull', True)), models.Q(('paused_since__isnull', False), models.Q(('pause_reason', ''), _negated=True)), _connector='OR'), name='endpoint_pause_has_a_reason', violation_error_message='A pause needs a start and a reason. To end a pause, clear its start, end and reason.'),
        ),
        migrations.AlterConstraint(
            model_name='mesh',
            name='mesh_quiet_hours_have_two_ends',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('quiet_from__isnull', True), ('quiet_until__isnull', True)), models.Q(('quiet_from__isnull', False), ('quiet_until__isnull', False), models.Q(('quiet_from', models.F('quiet_until')), _negated=True)), _connector='OR'), name='mesh_quiet_hours_have_two_ends', violation_error_message='Quiet hours need a start and a different end, or neither.'),
        ),
        migrations.AlterConstraint(
            model_name='site',
            name='site_quiet_hours_have_two_ends',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('quiet_from__isnull', True), ('quiet_until__isnull', True)), models.Q(('quiet_from__isnull', False), ('quiet_until__isnull', False), models.Q(('quiet_from', models.F('quiet_until')), _negated=True)), _connector='OR'), name='site_quiet_hours_have_two_ends', violation_error_message='Quiet hours need a start and a different end, or neither.'),
        ),
        migrations.AlterConstraint(
            model_name='site',
            name='site_pause_has_a_reason',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('pause_reason', ''), ('paused_since__isnull', True), ('paused_until__isnull', True)), models.Q(('paused_since__isnull', False), models.Q(('pause_reason', ''), _negated=True)), _connector='OR'), name='site_pause_has_a_reason', violation_error_message='A pause needs a start and a reason. To end a pause, clear its start, end and reason.'),
        ),
        migrations.AlterConstraint(
            model_name='subscription',
            name='subscription_name_once',
            constraint=models.UniqueConstraint(fields=('owner', 'name'), name='subscription_name_once', nulls_distinct=False, violation_error_message='Another subscription already has this name.'),
        ),
        migrations.AlterConstraint(
            model_name='subscription',
            name='subscription_of_list_has_no_own_sites',
            constraint=models.CheckConstraint(condition=models.Q(('owner__isnull', False), models.Q(('scope', 'own'), _negated=True), _connector='OR'), name='subscription_of_list_has_no_own_sites', violation_error_message='A shared subscription cannot have the scope “own”: use “sites” or “grid”.'),
        ),
        migrations.AlterConstraint(
            model_name='subscription',
            name='subscription_quiet_hours_have_two_ends',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('quiet_from__isnull', True), ('quiet_until__isnull', True)), models.Q(('quiet_from__isnull', False), ('quiet_until__isnull', False), models.Q(('quiet_from', models.F('quiet_until')), _negated=True)), _connector='OR'), name='subscription_quiet_hours_have_two_ends', violation_error_message='Quiet hours need a start and a different end, or neither.'),
        ),
        migrations.AlterConstraint(
            model_name='token',
            name='token_name_is_plain',
            constraint=models.CheckConstraint(condition=models.Q(('name__regex', '^[A-Za-z0-9][A-Za-z0-9._-]*$')), name='token_name_is_plain', violation_error_message='Use only letters, digits, dots, dashes and underscores. Begin with a letter or digit.'),
        ),
    ]
