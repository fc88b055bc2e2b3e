"""What others call a transfer, and what moved it: short, and safe for pages and files."""

from __future__ import annotations

import re

MOVER = r"[A-Za-z0-9][A-Za-z0-9._-]{0,19}"
# A formula of a spreadsheet begins otherwise.
REMOTE_ID = r"[A-Za-z0-9][A-Za-z0-9._:/@-]{0,99}"
# Without a name and password, and without a query, where tokens stand.
LOG_URL = r"https?://[A-Za-z0-9.:\[\]-]{1,200}/[A-Za-z0-9._~:/@%+,;=#-]{0,280}"


def kept(pattern: str, text: str) -> str:
    """Return a text that is written as it should be; nothing of any other."""
    return text if re.fullmatch(pattern, text, re.ASCII) else ""
