"""The open conditions of what a page shows, for parts/conditions.html."""

from collections.abc import Mapping
from typing import Any

from matrix.answers.conditions import words
from matrix.answers.conditions.lines import ConditionLine, of_class, worst_kind
from matrix.answers.conditions.reading import Judgement
from matrix.answers.words.names import NO_NAMES
from matrix.answers.words.phrases import counted

MOST = 8


def conditions_part(
    judgement: Judgement, size: str = "", names: Mapping[str, str] = NO_NAMES
) -> dict[str, Any]:
    """Return those of a size class, or of all, confirmed ones apart from others.

    `changed_words` count the confirmed ones, `changed_kind` is the worst of them. ``names`` are
    the short ones of endpoints.
    """
    changed, unconfirmed = (of_class(judgement, size, confirmed=flag) for flag in (True, False))
    verb = "is" if len(changed) == 1 else "are"
    return {
        "assessed": words.as_of(judgement),
        "doubtful": judgement.doubtful and words.doubtful(judgement.doubtful),
        "changed": [ConditionLine.of(each, names) for each in changed[:MOST]],
        "changed_words": f"{counted(len(changed), 'condition')} {verb} open." if changed else "",
        "changed_kind": worst_kind(changed),
        "more_changed": len(changed[MOST:]),
        "unconfirmed": [ConditionLine.of(each, names) for each in unconfirmed[:MOST]],
    }
