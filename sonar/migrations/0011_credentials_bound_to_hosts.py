from urllib.parse import urlsplit

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import sonar.models.registry
from sonar.credentials import rules

PORTS = {"http": 80, "dav": 80, "https": 443, "davs": 443, "root": 1094, "xroot": 1094}
PORTS |= {"gsiftp": 2811, "ftp": 21}
# For a credential of endpoints whose hosts cannot be named: no server can ever be there.
NOWHERE = "nowhere.invalid"
FILE_NAME = "^[A-Za-z0-9_-][A-Za-z0-9._-]*$"
FILE_NAME_SENTENCE = (
    "The name of a credential is made of letters, digits, dot, dash and underscore, and no dot "
    "stands first: it is the name of its file."
)
COUNTED = """
    CREATE TRIGGER credential_counts_version
    AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON sonar_credential
    FOR EACH STATEMENT EXECUTE FUNCTION sonar_count_version('registry');
"""
NOT_COUNTED = "DROP TRIGGER credential_counts_version ON sonar_credential;"
# That reason is not known any more: the next tick says it by another one.
FORGET_REASON = """
    UPDATE sonar_schedule SET skipped_because = '', skipped_since = NULL
    WHERE skipped_because = 'credential'
"""


def host_of(base_url):
    """Return the host of a base URL with its port, as credentials name it; empty if not."""
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname or "", parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return ""
    host = f"[{host}]" if ":" in host else host
    named = f"{host}:{port}" if port else host
    return named if rules.host_of(named) else ""


def bind_to_the_hosts_in_use(apps, schema_editor):
    """Each credential is for the hosts to which it has been sent so far, and for no others."""
    Credential = apps.get_model("sonar", "Credential")
    Endpoint = apps.get_model("sonar", "Endpoint")
    hosts = {}
    for name, base_url in Endpoint.objects.values_list("credential_name", "base_url"):
        if name:
            hosts.setdefault(name, set()).update(filter(None, [host_of(base_url)]))
    for name, found in sorted(hosts.items()):
        made = Credential.objects.create(name=name, hosts=sorted(found) or [NOWHERE])
        Endpoint.objects.filter(credential_name=name).update(credential=made)


def name_them_again(apps, schema_editor):
    Endpoint = apps.get_model("sonar", "Endpoint")
    for credential in apps.get_model("sonar", "Credential").objects.all():
        rows = Endpoint.objects.filter(credential=credential)
        rows.update(credential_name=credential.name)


class Migration(migrations.Migration):
    dependencies = [("sonar", "0010_one_open_probe_for_a_link")]

    operations = [
        migrations.CreateModel(
            name="Credential",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="Name of the file in SONAR_CREDENTIALS_DIR that holds its "
                        "bearer token.",
                        max_length=80,
                        unique=True,
                        validators=[
                            django.core.validators.RegexValidator(FILE_NAME, FILE_NAME_SENTENCE)
                        ],
                    ),
                ),
                (
                    "hosts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(
                            max_length=255, validators=[sonar.models.registry.validate_host]
                        ),
                        help_text="Where it may be sent: hosts, or host:port for one port alone, "
                        "in lower case.",
                        size=None,
                    ),
                ),
            ],
            options={"ordering": ["name"]},
        ),
        migrations.AddConstraint(
            model_name="credential",
            constraint=models.CheckConstraint(
                condition=models.Q(("name__regex", FILE_NAME)), name="credential_name_is_a_file"
            ),
        ),
        migrations.AddConstraint(
            model_name="credential",
            constraint=models.CheckConstraint(
                condition=models.Q(("hosts__len__gte", 1)),
                name="credential_has_a_host",
                violation_error_message="A credential is for at least one host.",
            ),
        ),
        migrations.RunSQL(COUNTED, NOT_COUNTED),
        migrations.RenameField("endpoint", "credential", "credential_name"),
        migrations.AddField(
            model_name="endpoint",
            name="credential",
            field=models.ForeignKey(
                blank=True,
                help_text="Reads, writes and deletes here; sent to this endpoint alone.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="endpoints",
                to="sonar.credential",
            ),
        ),
        migrations.RunPython(bind_to_the_hosts_in_use, name_them_again),
        migrations.RemoveField("endpoint", "credential_name"),
        migrations.AddField(
            model_name="endpoint",
            name="credential_lent",
            field=models.ForeignKey(
                blank=True,
                help_text="What the other end of a copy is given: it should not do more than "
                "read.",
                null=True,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="lending_endpoints",
                to="sonar.credential",
            ),
        ),
        migrations.AddField(
            model_name="endpoint",
            name="lend_credential",
            field=models.BooleanField(
                default=False,
                help_text="The other end of a copy may be given the credential itself, if none "
                "is lent.",
            ),
        ),
        migrations.RemoveConstraint("schedule", "schedule_skip_reason_is_known"),
        migrations.RunSQL(migrations.RunSQL.noop, FORGET_REASON),
        migrations.AlterField(
            model_name="schedule",
            name="skipped_because",
            field=models.CharField(
                blank=True,
                choices=[
                    ("downtime", "Downtime"),
                    ("cap", "Cap"),
                    ("quiet hours", "Quiet Hours"),
                    ("budget", "Budget"),
                    ("link", "another test of this link has not ended"),
                    ("circuit", "an end keeps failing"),
                    ("credential", "a credential would go where it may not"),
                ],
                max_length=12,
            ),
        ),
        migrations.AddConstraint(
            model_name="schedule",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "skipped_because__in",
                        [
                            "",
                            "downtime",
                            "cap",
                            "quiet hours",
                            "budget",
                            "link",
                            "circuit",
                            "credential",
                        ],
                    )
                ),
                name="schedule_skip_reason_is_known",
            ),
        ),
    ]
