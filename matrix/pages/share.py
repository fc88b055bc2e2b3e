"""A view for others: its data by REST, as files, and as a line for a terminal."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Share:
    """Paths below the root; the template puts scheme and host before them."""

    json: str
    csv: str

    @classmethod
    def of(cls, api_url: str) -> Share:
        """Make it of a call of the API that answers in JSON unless asked for CSV."""
        return cls(api_url, f"{api_url}{'&' if '?' in api_url else '?'}format=csv")
