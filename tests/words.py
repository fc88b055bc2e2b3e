"""What people read in this repository, as sentences: of templates, of scripts and of Python."""

import ast
import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from tests.imports import nodes

ROOT = Path(__file__).resolve().parent.parent
# What stands between two of these is a text of its own, a cell of a table or an item of a list.
BLOCKS = (
    "article aside body button caption dd details div dl dt fieldset figcaption footer form h1 h2 "
    "h3 h4 header label legend li main nav ol option p pre section select small summary table "
    "tbody td th thead title tr ul br input textarea"
)
BLOCK = re.compile(rf"</?(?:{'|'.join(BLOCKS.split())})\b[^>]*>", re.IGNORECASE)
# What is read on hover, or aloud.
READ_ATTRIBUTE = re.compile(r"""\b(?:title|aria-label|placeholder|alt)="([^"]*)\"""")
UNREAD = re.compile(
    r"<(script|style|svg|pre|datalist)\b.*?</\1>|<!--.*?-->|\{#.*?#\}"
    r"|\{% comment %\}.*?\{% endcomment %\}",
    re.DOTALL | re.IGNORECASE,
)
# Of a template: what a variable stands for is a word, and one branch is read without the other.
VARIABLE = re.compile(r"\{\{.*?\}\}", re.DOTALL)
WITH = re.compile(r"""\b\w+="([^"]*)\"""")
BRANCH = re.compile(r"\{% *(?:else|elif|empty|for|endfor|include)\b.*?%\}", re.DOTALL)
TERM = re.compile(r"""\{% *term "([^"]*)"(?: "([^"]*)")? *%\}""")
LOGIC = re.compile(r"\{%.*?%\}", re.DOTALL)
# Of a page of the docs. An address in brackets is not read.
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"(?<=\n\n)(?: {4}.*\n|\n)+")
INLINE_CODE = re.compile(r"`[^`]+`")
MARKUP = re.compile(r"\]\([^)]*\)|[\[*]|^ *(?:#+|>|-|\d+\.) ", re.MULTILINE)
MARKDOWN_BLOCK = re.compile(r"\n\s*\n|\n(?=#| *(?:-|\d+\.) |\|)| \| |\|\n")
SENTENCE = re.compile(r"(?<=[.!?])[\s”)]+")
STOP = "\u2029"
SQL = re.compile(r"\b(?:SELECT|INSERT INTO|UPDATE \w+ |DELETE FROM|COPY \w+|WITH \w+ AS|CREATE)\b")
A_STRING = re.compile(r"""`(?:[^`\\]|\\.)*`|"(?:[^"\\\n]|\\.)*\"""")


def texts_of_html(html: str) -> Iterator[str]:
    """Yield what a page says, block by block, and then what it says on hover."""
    read = UNREAD.sub(" ", html)
    for found in READ_ATTRIBUTE.findall(read):
        # What is said on hover may be several things, one behind the other.
        yield from filter(None, _plain(found).split("; "))
    for block in BLOCK.sub(STOP, read).split(STOP):
        if text := _plain(re.sub(r"<[^>]*>", "", block)):
            yield text


def texts_of_template(path: Path) -> Iterator[str]:
    source = UNREAD.sub(" ", path.read_text())
    for tag in re.findall(r"\{% *include\b.*?%\}", source, re.DOTALL):
        yield from WITH.findall(tag)
    source = TERM.sub(lambda tag: tag[2] or tag[1].replace("-", " "), source)
    source = LOGIC.sub(" ", BRANCH.sub(f"<p>{STOP}</p>", VARIABLE.sub("X", source)))
    yield from texts_of_html(source)


def texts_of_script(path: Path) -> Iterator[str]:
    code = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
    for found in A_STRING.findall(code):
        text = _plain(re.sub(r"\$\{[^}]*\}", "X", found[1:-1]))
        if " " in text:
            yield text


def texts_of_module(path: Path) -> Iterator[str]:
    """Yield the strings of a Python module that are more than a word, not docstrings nor SQL."""
    unread: set[int] = set()
    for node in nodes(path):
        if isinstance(node, ast.Expr):
            unread.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            unread |= {id(part) for part in node.values}
    for node in nodes(path):
        if id(node) in unread:
            continue
        text = _literal(node)
        if " " in text.strip() and not text.startswith("# ") and not SQL.search(text):
            yield _plain(text)


def sentences(text: str) -> Iterator[str]:
    yield from (each for each in SENTENCE.split(text) if each.strip())


def length(sentence: str) -> int:
    """Count words, without figures, times and signs, which are read at a glance."""
    return sum(
        any(map(str.isalpha, word)) and not any(map(str.isdigit, word)) for word in sentence.split()
    )


def _literal(node: ast.AST) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) and isinstance(part.value, str) else "X"
            for part in node.values
        )
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _plain(text: str) -> str:
    return re.sub(r"[\s\u00a0\u202f]+", " ", unescape(text)).strip(f" {STOP}")


def texts_of_markdown(path: Path) -> Iterator[str]:
    """Yield headings, paragraphs, items and cells of a page, without code."""
    page = FENCED.sub("\n", path.read_text())
    page = INDENTED.sub("\n", page)
    for block in MARKDOWN_BLOCK.split(page):
        if text := _plain(MARKUP.sub("", INLINE_CODE.sub("X", block))):
            yield text
