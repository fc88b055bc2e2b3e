"""Tables for documents, as Markdown and as LaTeX: texts in, with everything escaped.

The Markdown is that of GitHub. The LaTeX is a `table` with a plain `tabular`: it needs no package,
and is UTF-8, so that names in other than Latin letters need XeLaTeX or LuaLaTeX.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sonar.notation.units import DASH, THIN_SPACE

MARKDOWN_SIGNS = re.compile(r"([\\`*_\[\]<>|~&$#])")
# What TeX would read as more than a sign: one at the start of a row, or two that make a third.
TEX_SIGNS = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"{\char34}",
    "`": "{}`{}",
    "'": "{}'{}",
    "-": "{-}",
    "*": "{*}",
    "[": "{[}",
    "]": "{]}",
    "±": r"$\pm$",
    DASH: "--",
    THIN_SPACE: r"\,",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
}


@dataclass(frozen=True)
class Document:
    """How a table is written, line by line.

    ``start`` takes a caption, the heads of the columns and how many of these have words;
    ``rule`` sets apart what follows.
    """

    start: Callable[[str, Sequence[str], int], str]
    row: Callable[[Sequence[str]], str]
    rule: str
    end: str

    def whole(
        self, caption: str, heads: Sequence[str], rows: Sequence[Sequence[str]], last: Sequence[str]
    ) -> str:
        """Write a table whose first column has words, and whose last row is set apart."""
        lines = [self.start(caption, heads, 1), *map(self.row, rows)]
        return "".join([*lines, self.rule, self.row(last), self.end])


def one_line(text: str) -> str:
    """Return a text without what would break its line or cannot be printed."""
    return "".join(sign if sign.isprintable() or sign == THIN_SPACE else " " for sign in text)


def markdown_text(text: str) -> str:
    return MARKDOWN_SIGNS.sub(r"\\\1", one_line(text))


def markdown_start(caption: str, heads: Sequence[str], words: int) -> str:
    sides = [":--" if column < words else "--:" for column in range(len(heads))]
    return f"{markdown_text(caption)}\n\n{markdown_row(heads)}| {' | '.join(sides)} |\n"


def markdown_row(texts: Sequence[str]) -> str:
    return f"| {' | '.join(map(markdown_text, texts))} |\n"


def tex_text(text: str) -> str:
    return "".join(TEX_SIGNS.get(sign, sign) for sign in one_line(text))


def tex_start(caption: str, heads: Sequence[str], words: int) -> str:
    columns = "l" * words + "r" * (len(heads) - words)
    return (
        "\\begin{table}\n\\centering\n"
        f"\\caption{{{tex_text(caption)}}}\n"
        f"\\begin{{tabular}}{{{columns}}}\n\\hline\n{tex_row(heads)}\\hline\n"
    )


def tex_row(texts: Sequence[str]) -> str:
    return f"{' & '.join(map(tex_text, texts))} \\\\\n"


DOCUMENTS = {
    "markdown": Document(markdown_start, markdown_row, "", ""),
    "latex": Document(tex_start, tex_row, "\\hline\n", "\\hline\n\\end{tabular}\n\\end{table}\n"),
}
