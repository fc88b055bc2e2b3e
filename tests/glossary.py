"""Writes docs/glossary.md from the glossary of the pages: `python -m tests.glossary`."""

from collections.abc import Iterator
from pathlib import Path

from matrix.answers.words.glossary import GLOSSARY, Term

PAGE = Path(__file__).resolve().parent.parent / "docs" / "glossary.md"
HEAD = """\
# Glossary

The terms that pages, notifications, the API and these documents use, and their names in other
tools. Sonar shows the same list at `/glossary/`.
"""
COLUMNS = "| term | meaning | in other tools | more |\n| --- | --- | --- | --- |"


def glossary_page() -> str:
    """Return the text of docs/glossary.md."""
    return "\n".join(lines()) + "\n"


def lines() -> Iterator[str]:
    yield HEAD
    for number, (group, terms) in enumerate(GLOSSARY.items()):
        yield f"{chr(10) if number else ''}## {group}\n\n{COLUMNS}"
        yield from map(row, terms)


def row(term: Term) -> str:
    more = f"[{term.doc.partition('#')[0]}]({term.doc})" if term.doc else ""
    return f"| {' | '.join((f'**{term.name}**', term.meaning, term.elsewhere, more))} |"


if __name__ == "__main__":
    PAGE.write_text(glossary_page())
