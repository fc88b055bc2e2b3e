"""Addresses that accounts have saved go on: values and paths in them have new names."""

from django.db import migrations

# In the order in which they are replaced: a regular expression, and what replaces it.
NEW = {
    r"([?&]stat=)expected(?=&|$)": r"\1predicted",
    r"([?&]stat=)residual(?=&|$)": r"\1vs_predicted",
    r"^([^?]*/history/\?(.*&)?)door=": r"\1channel=",
    r"^([^?]*)/operations/names/": r"\1/operations/aliases/",
}
OLD = {
    r"([?&]stat=)predicted(?=&|$)": r"\1expected",
    r"([?&]stat=)vs_predicted(?=&|$)": r"\1residual",
    r"^([^?]*/history/\?(.*&)?)channel=": r"\1door=",
    r"^([^?]*)/operations/aliases/": r"\1/operations/names/",
}
# An address that would become too long stays: its page says what has another name.
REPLACE = """
    UPDATE sonar_savedview SET address = regexp_replace(address, %(old)s, %(new)s)
    WHERE address ~ %(old)s AND length(regexp_replace(address, %(old)s, %(new)s)) <= 2000
"""


def replace(names):
    def run(apps, schema_editor):
        with schema_editor.connection.cursor() as cursor:
            for old, new in names.items():
                cursor.execute(REPLACE, {"old": old, "new": new})

    return run


class Migration(migrations.Migration):
    dependencies = [("sonar", "0063_unknown_aliases")]

    operations = [migrations.RunPython(replace(NEW), replace(OLD))]
