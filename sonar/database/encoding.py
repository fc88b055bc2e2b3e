"""The database must keep text as UTF-8: another encoding is told in a sentence before it matters.

A database of SQL_ASCII knows no characters, only bytes, and gives them back as such.
"""

from typing import Any

import psycopg

NEEDED = "UTF8"
SENTENCE = (
    "The database keeps text as {}, and Sonar needs UTF8. Make another one (CREATE DATABASE sonar "
    "ENCODING 'UTF8' TEMPLATE template0), and let DATABASE_URL name it."
)


def problem(session: psycopg.Connection[Any]) -> str | None:
    """Say what is wrong with the encoding of a database; the server told it at the start."""
    encoding = session.info.parameter_status("server_encoding")
    return None if encoding == NEEDED else SENTENCE.format(encoding)
