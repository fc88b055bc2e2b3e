"""The glossary: one source for its page, the docs and the terms on other pages."""

import re
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse
from django.utils.text import slugify

from matrix.answers.words.glossary import BY_ANCHOR, GLOSSARY
from tests.glossary import PAGE, glossary_page
from tests.matrix import responses
from tests.matrix.world import World
from tests.test_words import LONGEST
from tests.words import length

TERMS = [term for terms in GLOSSARY.values() for term in terms]
DOCS = PAGE.parent


def test_the_page_of_the_docs_is_that_of_the_glossary():
    assert PAGE.read_text() == glossary_page(), "run python -m tests.glossary"


def test_terms_are_named_once_and_explained_in_one_sentence():
    assert len(BY_ANCHOR) == len(TERMS)
    for term in TERMS:
        assert re.fullmatch(r"[A-Z][^.!?]*\.", term.meaning), term
        assert length(term.meaning) <= LONGEST, term


def anchors(path: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.anchor)
def test_where_a_term_is_explained_and_shown_exists(term):
    if term.page:
        assert reverse(term.page)
    if term.doc:
        file, _, anchor = term.doc.partition("#")
        assert (DOCS / file).is_file()
        assert not anchor or anchor in anchors(DOCS / file), term.doc


@pytest.mark.django_db
def test_its_page_shows_every_term_with_its_anchor(client: Client):
    page = responses.page(client, "/glossary/")
    assert page.texts("h2") == list(GLOSSARY)
    assert page.texts("dt") == [term.name for term in TERMS]
    for group in GLOSSARY:
        assert page.parts(f"#{slugify(group)}")
    for term in TERMS:
        assert term.meaning in page.part(f"#{term.anchor}")


@pytest.mark.django_db
def test_each_page_leads_to_it(client: Client, small_world: World):
    for address in ("/", "/table/", "/operations/"):
        assert responses.page(client, address).link("Glossary") == "/glossary/"
