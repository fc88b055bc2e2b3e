"""How many examples a property is tried with; the profiles of Hypothesis are in conftest.py."""

from __future__ import annotations

from hypothesis import settings


def examples(thorough: int) -> settings:
    """Try so many in the thorough profile, and as much fewer in the quick one as all others.

    For properties whose examples cost much more, or much less, than most.
    """
    return settings(max_examples=max(thorough * settings.default.max_examples // 100, 3))
