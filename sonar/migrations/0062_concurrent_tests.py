"""Other tests at the same time are concurrent tests: columns, and addresses of saved views."""

from urllib.parse import unquote_plus

from django.db import migrations, models

COLUMNS = {
    "beside_source": "concurrent_at_source_mean",
    "beside_source_max": "concurrent_at_source_max",
    "beside_destination": "concurrent_at_destination_mean",
    "beside_destination_max": "concurrent_at_destination_max",
}
PARAMETERS = {
    "beside": "concurrent",
    "compare.beside": "compare.concurrent",
}
VALUES = {"0": "none", "!0": "!none"}
LONGEST_ADDRESS = 2000
PROFILE_FIELDS = ["mover", "mode", "streams", "streams_used", "tcp_buffer_bytes", "ip_version"]
PROFILE_FIELDS += ["origin", "mesh", "activity", "clock"]


def rename_in(address: str, names: dict[str, str], values: dict[str, str]) -> str:
    """Return the address with these parameters, and their values, renamed."""
    path, mark, query = address.partition("?")
    parts = []
    for part in query.split("&"):
        name, equals, value = part.partition("=")
        if new_name := names.get(unquote_plus(name)):
            part = f"{new_name}{equals}{values.get(unquote_plus(value), value)}"
        parts.append(part)
    return f"{path}{mark}{'&'.join(parts)}"


def rename_parameters(apps, schema_editor):
    rename_views(apps, PARAMETERS, VALUES)


def restore_parameters(apps, schema_editor):
    names, values = ({new: old for old, new in pairs.items()} for pairs in (PARAMETERS, VALUES))
    rename_views(apps, names, values)


def rename_views(apps, names: dict[str, str], values: dict[str, str]) -> None:
    for view in apps.get_model("sonar", "SavedView").objects.all():
        address = rename_in(view.address, names, values)
        # A page says what a parameter is called now where the new address has no room.
        if address != view.address and len(address) <= LONGEST_ADDRESS:
            view.address = address
            view.save(update_fields=["address"])


def once(concurrent: str) -> models.UniqueConstraint:
    return models.UniqueConstraint(
        fields=[*PROFILE_FIELDS, concurrent, "purpose"], name="profile_once", nulls_distinct=False
    )


class Migration(migrations.Migration):
    dependencies = [("sonar", "0061_history_channel")]

    operations = [
        migrations.RemoveConstraint("profile", "profile_once"),
        migrations.RemoveConstraint("profile", "profile_beside_is_0_or_1"),
        migrations.RenameField("profile", "beside", "concurrent"),
        migrations.AlterField(
            "profile",
            "concurrent",
            models.PositiveSmallIntegerField(
                help_text="0: no concurrent tests at the source or the destination; 1: at least 1; "
                "empty: not recorded.",
                null=True,
            ),
        ),
        migrations.AddConstraint("profile", once("concurrent")),
        migrations.AddConstraint(
            "profile",
            models.CheckConstraint(
                condition=models.Q(
                    ("concurrent__isnull", True), ("concurrent__in", [0, 1]), _connector="OR"
                ),
                name="profile_concurrent_is_0_or_1",
            ),
        ),
        *(migrations.RenameField("transfer", old, new) for old, new in COLUMNS.items()),
        migrations.RunPython(rename_parameters, restore_parameters),
    ]
