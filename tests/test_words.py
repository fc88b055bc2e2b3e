"""English: words that are not used, one word for each thing, and sentences of at most 20 words."""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from matrix.query.addresses import address
from sonar.models import Transfer
from tests.matrix import troubled
from tests.matrix.responses import html
from tests.matrix.troubled import TroubledGrid
from tests.scenes import standing
from tests.words import (
    ROOT,
    length,
    sentences,
    texts_of_html,
    texts_of_module,
    texts_of_script,
    texts_of_template,
)

# What is not written, and what is written instead.
INSTEAD = {
    # Calques: words of one language, order and use of another.
    r"beyond chance": "significantly",
    r"by more than chance|than chance explains": "significantly",
    r"in parts of": "divided by, relative to",
    r"\bbeside\b": "alongside, next to",
    r"was to be expected": "expected",
    r"changes? of level": "change in rate",
    r"without a pattern": "irregularly",
    r"\btells? \w+ (?:\w+ )?from\b|\bto tell\b|told apart|\bcannot tell\b": "shows",
    r"as far as (?:chance|the mover|any)": "looks",
    r"\bnobody (?:told|can (?:say|tell))\b": "not reported, not known",
    r"time that can be asked for": "a valid time",
    r"results enough": "enough results",
    r"at most, run|unless tests are held up": "",
    r"drawn by a script|what uses it|explains what is seen": "",
    r"links? of which (?:every|some)\b": "links with",
    # One word for each thing.
    r"\b(?:both|their|either|two|opposite) ends?\b|\bits ends\b": "endpoints",
    r"\b(?:one|each|other) end\b": "endpoint, source, destination",
    r"\ban? ends? of (?:this|the|a) link": "endpoint",
    r"\bannotations?\b": "note",
    r"\bprobes?\b": "test",
    r"\bretransmits\b": "retransmissions",
    r"\bmeasurements?\b": "test, result",
    r"\bspeeds?\b|\bthroughputs? of (?:a|the) link": "rate",
    # Numbers and times.
    r"\bR2\b": "R²",
}
# A date as only forms have it, which show how one is typed, and those that are in them.
DATE = re.compile(r"\b(?:19|20)\d\d-\d\d-\d\d \d\d:\d\d")
TYPED = re.compile(rf"{DATE.pattern}\.\.{DATE.pattern}|2026-11-20 04:00")
LONGEST = 20
PYTHON = sorted(
    path
    for package in ("sonar", "matrix")
    for path in (ROOT / package).rglob("*.py")
    if "migrations" not in path.parts
)
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static" / "js").rglob("*.js"))
# Where else words are read: of the schema of the API, which has names that do not change, and of
# the registry's tables, whose help stands in migrations.
NAMES = ("matrix/api", "sonar/models")
"""Their texts may have the names of fields: `beside`, `probes`, `annotations`."""
# Sentences that may be longer, with the reason.
LONGER = {
    "Same for all links: ": "a list of columns that say nothing",
    "JSON Plot of the site as destination": "a list of links",
    "Fri 20 Nov, Thu 19 Nov": "the list of days behind the strip, which are links",
    "The name of a credential is made of letters": "a rule that stands in a migration",
    "A host of a credential is a name or an address": "a rule that stands in a migration",
}


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def read() -> list[tuple[str, str]]:
    """Return what people read, with the file that has it."""
    return [
        (name_of(path), text)
        for paths, texts in (
            (TEMPLATES, texts_of_template),
            (SCRIPTS, texts_of_script),
            (PYTHON, texts_of_module),
        )
        for path in paths
        for text in texts(path)
    ]


def test_no_word_is_written_that_has_a_better_one() -> None:
    """Failed for each of them before it was replaced."""
    texts = [one for one in read() if not one[0].startswith(NAMES)]
    joined = "\0".join(text for _, text in texts)
    found = [
        (instead, *texts[joined.count("\0", 0, at.start())])
        for pattern, instead in INSTEAD.items()
        for at in re.finditer(pattern, joined, re.IGNORECASE)
    ]
    assert not found, "write the first instead"


def too_long(texts: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{place}, {length(sentence)} words: {sentence}"
        for place, text in texts
        for sentence in sentences(text)
        if length(sentence) > LONGEST and not any(map(sentence.__contains__, LONGER))
    ]


def test_sentences_of_files_have_at_most_twenty_words() -> None:
    assert not too_long(text for text in read() if not text[0].startswith(NAMES))


@pytest.fixture(scope="module")
def grid(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[TroubledGrid]:
    """Five weeks in which links fail, slow down, go and come, and a downtime."""
    with standing(django_db_blocker, lambda: troubled.make(3)) as made:
        yield made


def pages(grid: TroubledGrid) -> Iterator[str]:
    for name in ("matrix", "table", "sites", "causes", "events", "operations", "search"):
        yield address(name)
    yield f"{address('matrix')}?compare=week"
    yield f"{address('matrix')}?wall=1"
    yield f"{address('causes')}?compare=month"
    yield f"{address('causes')}?compare=week"
    yield f"{address('events')}?significant=any"
    kinds = {happens.kind: pair for pair, happens in grid.troubles.items()}
    for pair in kinds.values():
        yield address("link", *pair)
    yield f"{address('link', *kinds['slower'])}?compare=week"
    sites = {pair[0].removesuffix("_DISK") for pair in kinds.values()}
    for site in sorted(sites):
        yield address("site", site)
    yield f"{address('site', sorted(sites)[0])}?compare=week"
    for state in ("done", "failed", "lost"):
        yield address("transfer", Transfer.objects.filter(state=state).order_by("id")[0].id)


@pytest.mark.long
@pytest.mark.django_db
def test_pages_say_it_in_sentences_of_at_most_twenty_words_with_dates_of_one_form(
    client: Client, grid: TroubledGrid, at_noon: None
) -> None:
    said = [(page, text) for page in pages(grid) for text in texts_of_html(html(client, page))]
    assert len(said) > 1000
    assert not too_long(said)
    assert not [text for text in said if DATE.search(TYPED.sub("", text[1]))]
