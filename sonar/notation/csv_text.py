"""Texts in CSV for people: what a spreadsheet would take for a formula has an apostrophe before it.

Whoever names an endpoint or writes an error decides what is in a file that others open. What begins
with one of LEADING and is no number gets the apostrophe, and so does what begins with apostrophes
and then one of these: taking off one apostrophe gives back every text as it was.
"""

import re

MOVER = r"[A-Za-z0-9][A-Za-z0-9._-]{0,19}"
# A formula of a spreadsheet begins otherwise.
REMOTE_ID = r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}"
# Without a name and password, and without a query, where tokens stand.
LOG_URL = r"https?://[A-Za-z0-9.:\[\]-]{1,200}/[A-Za-z0-9._~:/@%+,;=#-]{0,280}"
# A host by its name or address, and its port.
DATA_SERVER = r"(?:\[[0-9a-fA-F:.]{2,45}\]|[A-Za-z0-9][A-Za-z0-9._-]{0,252}):[0-9]{1,5}"


def kept(pattern: str, text: str) -> str:
    """Return a text that is written as it should be; nothing of any other."""
    return text if re.fullmatch(pattern, text, re.ASCII) else ""


LEADING = "=+@\t\r-"
_QUOTED = re.compile(f"'+[{LEADING}]")
_RISKY = re.compile(f"'*[{LEADING}]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# The same as an expression of PostgreSQL, of a text that may be NULL or empty: both are NULL.
_SQL = (
    "CASE WHEN {text} = '' THEN NULL "
    rf"WHEN {{text}} ~ '^''*[{LEADING}]' AND {{text}} !~ '^{_NUMBER.pattern}$' "
    "THEN '''' || {text} ELSE {text} END"
)


def quoted(text: str) -> str:
    """Return a text as it stands in a file for people."""
    return f"'{text}" if _RISKY.match(text) and not _NUMBER.fullmatch(text) else text


def unquoted(text: str) -> str:
    """Return the text that stands in such a file."""
    return text[1:] if _QUOTED.match(text) else text


def sql(text: str) -> str:
    """Return what `quoted` does as an expression of PostgreSQL, of a column."""
    return _SQL.format(text=text)
