"""English: words that are not used, one word for each thing, and sentences of at most 20 words."""

import re
from collections.abc import Iterable, Iterator

import pytest
from django.test import Client
from pytest_django import DjangoDbBlocker

from matrix.query.addresses import address
from sonar.models import Transfer
from tests import retired
from tests.matrix import troubled
from tests.matrix.responses import html
from tests.matrix.troubled import TroubledGrid
from tests.scenes import standing
from tests.words import length, sentences, texts_of_html

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
# Idioms that readers stumble over, as most of them were in sentences that nobody understood alone.
IDIOMS = {
    r"\bbeside\b|\bbehind\b": "next to, after, besides",
    r"\bso (?:many|much|long|few)\b(?![^.;:]* that\b)": "this many, the number of, up to",
    r"\b(?:anew|by itself|by themselves)\b": "again, automatically, alone",
    r"\b(?:whoever|somebody|anybody|nobody)\b": "the user, someone, no one",
    r"\b(?:is|are|was|were|be|been) (?:said|told)\b|\btells\b|\b(?:can|cannot|to) tell\b": (
        "shows, reports, notifies, requests"
    ),
    r"\bstands?\b(?! for| out)": "is, appears, is listed",
    r"(?<!there )\b(?:is|are|was|were) (?:none|no (?!longer\b)[a-z]+)\b": "is not a, has no",
    r"\b(?:alike|be it|goes? with it|goes? by)\b": "the same, such as, is identified by",
    r"(?:^|[.:;] )(?-i:What|Who|Whom|Whose) (?![^.]*\?)": "the noun that a reader looks for",
    r"\bof (?:which|whom)\b": "two sentences",
    r"\bany more\b(?! [a-z]+s\b)|\bno more\b(?! than\b| [a-z]+s\b)": "no longer",
    r"\b(?:says?|returns?) so\b(?! (?:many|much))": "the verb itself",
    r"\bas good as\b|\bheld against\b|\bspread thin\b|\bfrom when to when\b": "the plain words",
    r"\b(?:is|are|was|were) asked for\b": "is requested",
    r"\b(?:is|are|who|what is) (?:ill|far away)\b": "degraded, distant",
    r"\bunder the pointer\b|\btelephones?\b|\bserver of e-mail\b|\bpage of operations\b": (
        "on hover, phone, mail server, Health page"
    ),
    r"\b(?:behaviors?|centers?|colors?|favors?|canceled|labeled)\b(?!-)": "British spelling",
}
PATTERNS = {re.compile(pattern, re.IGNORECASE): better for pattern, better in IDIOMS.items()}
# Where an idiom is right.
ALLOWED = {
    "left behind": "of files: the usual word for it",
    "What happened": "as plain as a noun",
    "middle center": "a position, as Plotly calls it",
}
UNIDIOMATIC = (
    "The rate stands beside the matrix.",
    "The last errors stand behind the table.",
    "So many failed tests in a row.",
    "The role is set anew at each log-in.",
    "Ask whoever runs this Sonar.",
    "It is told every minute which incidents are open.",
    "As far as the figures can tell.",
    "The name compare is none for a size class.",
    "The value is no text.",
    "Results measured alike share a profile.",
    "What of",
    "Tests go on. What is due waits.",
    "Endpoints, of which two are paused.",
    "Not my site any more",
    "The server says so.",
    "Two streams are as good as one.",
    "Who timed it, and from when to when.",
    "Only if it is asked for.",
    "Which links are ill",
    "The names are under the pointer.",
    "The behavior of servers",
)
PLAIN = (
    "There is no size class “huge”. Choose a listed one.",
    "There are none.",
    "Test files left behind at endpoints are not deleted.",
    "The name stands for all endpoints, and no more than five stand out.",
    "What changed?",
    "It has so many results that they fill the page.",
    "Links with any more tests, and no more tests than that.",
    "This alias is no longer unknown.",
    "The colour of the cell, and prefers-color-scheme",
)
RETIRED = (
    "Sonar calls people when a link fails.",
    "I take it",
    "Expectations of this link",
    "The residual of a link",
    "A stream experiment",
    "Tests alongside others",
    "The door of a change",
    "Names of others",
    "The largest window of a connection",
    "The median is below the usual.",
    "No worker can run the mover.",
    "mover",
    "Window",
    "The beat sends nothing.",
    "Unsealed hours",
    "Each sweep removes lost tests.",
    "The cleaning of files",
    "The standing of a link",
    "Slower, beyond chance",
    "Workers at this vantage",
    "The endpoint lends its token.",
    "The verdict of the server",
)
RETIRED_NAMES = (
    "/api/v1/transfers/?beside=0",
    '"beside_source_max": 3',
    "/api/v1/changes/",
    "/events/?window=7d&level=source",
    "sure=any",
    "door=page",
    "`expectations`",
    "experiment=3",
    "?stat=residual",
    '"floor": 3',
    "manage.py experiment A B",
    "sonar_unsealed_buckets",
    "SONAR_SIGN_SECONDS=10",
)
OF_TODAY = (
    "The TCP window and the congestion window are small; the time range is long.",
    "window cannot be combined with `from`.",
    "As usual and slower than usual are states.",
    "The scheduler (Celery beat) runs.",
    "A flow label names an experiment and an activity.",
    "No worker runs at the vantage point “cern”.",
    "The transfer tool has the name `mover` in the API.",
)
NAMES_OF_TODAY = (
    "concurrent=none",
    "significant=any",
    "/events/?type=slower&scope=link",
    '"floor_mb_s": 20',
    "SONAR_HEARTBEAT_SECONDS",
    "sonar_uncompacted_buckets",
    "docs/changes/",
)
# A date as only forms have it, which show how one is typed, and those that are in them.
DATE = re.compile(r"\b(?:19|20)\d\d-\d\d-\d\d \d\d:\d\d")
TYPED = re.compile(rf"{DATE.pattern}\.\.{DATE.pattern}|2026-11-20 04:00")
LONGEST = 20
# Where else words are read: of the schema of the API, which has names that do not change, and of
# the registry's tables, whose help stands in migrations.
NAMES = ("matrix/api", "sonar/models")
"""Their texts may have the names of fields: `beside`, `probes`, `annotations`."""
FILES = ("templates", "JavaScript", "strings")
# Sentences that may be longer, with the reason.
LONGER = {
    "Same for all links: ": "a list of columns that say nothing",
    "JSON Plot of the site as destination": "a list of links",
    "Fri 20 Nov, Thu 19 Nov": "the list of days behind the strip, which are links",
    "A host of a credential is a name or an address": "a rule that stands in a migration",
}


def read(*kinds: str) -> list[tuple[str, str]]:
    """Return what people read, with the file that has it."""
    texts = retired.read()
    return [(text.place, text.words) for kind in kinds for text in texts[kind] if not text.is_code]


def test_no_word_is_written_that_has_a_better_one() -> None:
    """Failed for each of them before it was replaced."""
    texts = [one for one in read(*FILES) if not one[0].startswith(NAMES)]
    joined = "\0".join(text for _, text in texts)
    found = [
        (instead, *texts[joined.count("\0", 0, at.start())])
        for pattern, instead in INSTEAD.items()
        for at in re.finditer(pattern, joined, re.IGNORECASE)
    ]
    assert not found, "write the first instead"


def idioms(text: str) -> Iterator[tuple[str, str]]:
    for pattern, better in PATTERNS.items():
        for at in pattern.finditer(text):
            around = text[max(0, at.start() - 20) : at.end() + 20]
            if not any(map(around.__contains__, ALLOWED)):
                yield at.group(), better


def test_no_idiom_is_written_that_readers_stumble_over() -> None:
    texts = read(*FILES, "glossary", "OpenAPI", "help of commands")
    assert [(*found, *each) for each in texts for found in idioms(each[1])] == [], (
        "write the second"
    )


def test_no_retired_term_is_left() -> None:
    assert list(retired.retired()) == [], "python -m tests.retired lists them"


def test_each_idiom_is_found_and_plain_english_is_not() -> None:
    found = {better for text in UNIDIOMATIC for _, better in idioms(text)}
    assert found == set(IDIOMS.values())
    assert [text for text in UNIDIOMATIC if not list(idioms(text))] == []
    assert [each for text in PLAIN for each in idioms(text)] == []


def test_each_retired_term_is_found_and_terms_of_today_are_not() -> None:
    texts = [*(retired.Text("a page", text) for text in RETIRED), *map(code, RETIRED_NAMES)]
    found = {instead for text in texts for _, instead in retired.retired_in(text)}
    assert found == {*retired.TERMS.values(), *retired.NAMES.values()}
    assert [text.words for text in texts if not list(retired.retired_in(text))] == []
    texts = [*(retired.Text("a page", text) for text in OF_TODAY), *map(code, NAMES_OF_TODAY)]
    assert [each for text in texts for each in retired.retired_in(text)] == []


def code(words: str) -> retired.Text:
    return retired.Text("a file", words, is_code=True)


def test_whatever_is_searched_has_texts() -> None:
    """A source of texts that is empty would hide what is written there."""
    least = dict.fromkeys(retired.read(), 25) | {"JavaScript": 100, "templates": 2000}
    assert {
        kind: len(texts) for kind, texts in retired.read().items() if len(texts) < least[kind]
    } == {}


def test_every_exception_is_needed() -> None:
    """A place that was rewritten does not stay on the lists of what is allowed."""
    joined = "\0".join(
        f"{text.place}: {text.words}" for texts in retired.read().values() for text in texts
    )
    assert [each for each in (*ALLOWED, *retired.KEPT) if each not in joined] == []


def too_long(texts: Iterable[tuple[str, str]]) -> list[str]:
    return [
        f"{place}, {length(sentence)} words: {sentence}"
        for place, text in texts
        for sentence in sentences(text)
        if length(sentence) > LONGEST and not any(map(sentence.__contains__, LONGER))
    ]


def test_sentences_of_files_have_at_most_twenty_words() -> None:
    assert not too_long(text for text in read(*FILES) if not text[0].startswith(NAMES))


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
