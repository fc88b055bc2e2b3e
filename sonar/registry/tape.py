"""The words by which sources of topology and of downtimes say that storage is tape."""

import re

TAPE = re.compile(r"tape|nearline|custodial|eos.?cta|(?<![a-z])(castor|hsm|t[1-9]d0)(?![a-z])")
"""GOCDB has `SRM.nearline` and `wlcg.webdav.tape`, OSG `SRMv2.tape`, CRIC `DATATAPE`, SRR both."""


def says_tape(*texts: str | None) -> bool:
    """Say whether one of the texts names tape, and not disk as well."""
    words = [text.casefold() for text in texts if text]
    return any(TAPE.search(word) is not None and "disk" not in word for word in words)
