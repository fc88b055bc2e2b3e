"""The X.509 proxy that a program shows: one, to those ends for which it is and to nobody else."""

from __future__ import annotations

from pathlib import Path

from sonar.movers.base import End, MoverError, Order, Where
from sonar.notation.base_urls import scheme_of

# Else a program takes the one that it finds at the usual place of its user.
NONE = {"X509_USER_PROXY": "/nonexistent"}
# Without GSI nobody is shown one, and gfal2 wants to open what is named.
NEVER_SHOWN = "ftp"


def variables(order: Order, *ends: End) -> dict[str, str]:
    """Return what tells a program, by its environment alone, what to show to these ends.

    The file stays where it is: what it holds is read by the program. Raises MoverError for ends
    that have not all the same one, as a program shows its only one to whoever asks for it.
    """
    first, *others = ends
    if any(end.proxy != first.proxy for end in others):
        raise MoverError(Where.CONTROL, sentence(*ends), permanent=True)
    if first.proxy:
        return {"X509_USER_PROXY": first.proxy} | trusted(order)
    over_ftp = all(scheme_of(end.url) == NEVER_SHOWN for end in ends)
    return ({} if over_ftp else NONE) | trusted(order)


def sentence(*ends: End) -> str:
    """Say why one program cannot serve ends with these proxies."""
    without = [end.where for end in ends if not end.proxy]
    if without:
        reason = f"the {without[0]} has no X.509 proxy, and would be shown the other one's"
    else:
        reason = "the endpoints have different X.509 proxies"
    return f"{reason}: a program has one for both, so both endpoints need the same credential"


def trusted(order: Order) -> dict[str, str]:
    """Name the directory of certificate authorities, where there is one of Sonar's own."""
    own = order.ca_bundle
    return {"X509_CERT_DIR": own} if own and Path(own).is_dir() else {}
