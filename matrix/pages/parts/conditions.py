"""The open conditions of what a page shows, for parts/conditions.html."""

from collections.abc import Mapping
from typing import Any

from matrix.answers.conditions import words
from matrix.answers.conditions.reading import Judgement
from matrix.answers.site.verdict import ConditionLine, of_class, worst_kind
from matrix.answers.words.names import NO_NAMES

MOST = 8


def conditions_part(
    judgement: Judgement, size: str = "", names: Mapping[str, str] = NO_NAMES
) -> dict[str, Any]:
    """Return those of a size class, or of all, confirmed ones apart from others.

    `changed_kind` is the worst of the confirmed ones; ``names`` are the short ones of endpoints.
    """
    changed, unconfirmed = (of_class(judgement, size, confirmed=flag) for flag in (True, False))
    return {
        "assessed": words.as_of(judgement),
        "doubtful": judgement.doubtful and words.doubtful(judgement.doubtful),
        "changed": [ConditionLine.of(each, names) for each in changed[:MOST]],
        "changed_kind": worst_kind(changed),
        "more_changed": len(changed[MOST:]),
        "unconfirmed": [ConditionLine.of(each, names) for each in unconfirmed[:MOST]],
    }
