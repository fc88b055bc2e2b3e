"""How many examples a property is tried with; the profiles of Hypothesis are in conftest.py."""

from hypothesis import settings


def examples(thorough: int) -> settings:
    """Try so many where most properties try a hundred, and in each profile as much more or less.

    For properties whose examples cost much more, or much less, than most.
    """
    return settings(max_examples=max(thorough * settings.default.max_examples // 100, 3))
