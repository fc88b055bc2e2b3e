"""Lists what people read of Sonar and the retired terms that are left: `python -m tests.retired`.

The test of words (test_words.py) checks the same texts, for idioms too.
"""

import json
import os
import re
import sys
import tomllib
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

from sonar.settings.environment import RETIRED
from tests.words import (
    INLINE_CODE,
    ROOT,
    texts_of_markdown,
    texts_of_module,
    texts_of_script,
    texts_of_template,
)

SETTINGS = ROOT / "sonar" / "settings"
API_EXAMPLES = ROOT / "matrix" / "api" / "examples.json"
GLOSSARY = ROOT / "matrix" / "answers" / "words" / "glossary.toml"
PYTHON = sorted(
    path
    for package in ("sonar", "matrix")
    for path in (ROOT / package).rglob("*.py")
    if "migrations" not in path.parts
)
TEMPLATES = sorted(
    path for path in (ROOT / "templates").rglob("*") if path.suffix in {".html", ".txt"}
)
SCRIPTS = sorted((ROOT / "static" / "js").rglob("*.js"))
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Also what is copied from the docs to servers.
EXAMPLES = sorted(
    path
    for folder in ("examples", "systemd", "containers")
    for path in (ROOT / "docs" / folder).rglob("*")
    if path.is_file() and path.suffix != ".pyc"
)
DEPLOYED = [ROOT / ".env.example", ROOT / "docker-compose.yml"]
# Not at the beginning, where an error may have the name of a field as it was typed.
NO_FIELD = r"(?:(?<!^)|^(?=(?-i:[A-Z]))|^(?=\w+$))"
# Terms that sentences do not use, and what is written instead.
TERMS = {
    r"\bcall(?:s|ed|ing)? (?:people|persons|users|(?:any|no|some) ?body|no one|you|whoever)\b"
    r"|\b(?:is|are|was|were) called for\b|\bwhom Sonar\b": "notify",
    r"\bI take it\b|\bI have seen it\b|\bgive it to\b|\bwho is on it\b|\bnew normal\b"
    r"|\btakes? (?:it|this) for normal\b|\bwhat speaks for\b": (
        "assign, acknowledge, evidence, new baseline"
    ),
    r"\bexpectations?\b": "target",
    r"\bresiduals?\b": "difference from the predicted rate",
    r"\bexperiments?\b": "parameter sweep",
    r"\b(?:keep|kept|in) company\b|\balongside (?:others?|each other)\b": "concurrent tests",
    r"(?<!dCache )\bdoors?\b": "channel, write path",
    r"\b(?:names? of others|foreign names?|also known as)\b": "alias",
    rf"{NO_FIELD}(?<!“)(?<!TCP )(?<!congestion )(?<!receive )(?<!receiver's )(?<!browser )"
    r"\bwindows?\b(?!=|-limited)": "time range, TCP window",
    r"\b(?:the|its|their|no|a) usual\b(?! [a-z])|(?<!as )(?<!than )\busual (?:is|was|of|and|are)\b"
    r"|\busuals\b": "baseline",
    rf"{NO_FIELD}(?<![./])\bmovers?\b(?!\.\w|[/_=(])": "transfer tool",
    r"(?<!Celery )(?<!Celery: )\bbeat\b": "scheduler",
    r"\b(?:un)?seal(?:s|ed|ing)?\b": "compact",
    r"\b(?:the|a|each) sweep (?:removes|deletes|ends|finds)\b": "recovery",
    r"\bcleaning (?:of|task|deletes)\b": "clean-up",
    r"\bstandings?\b": "status, rank",
    r"\b(?:for sure|beyond chance)\b": "significant",
    r"\bvantages?\b(?! points?\b)(?![/_=])": "vantage point",
    r"\b(?:lends?|lent|lending)\b": "delegate",
    r"\bverdicts?\b": "summary, final line",
}
# Names of parameters, fields, columns, addresses, commands, metrics and settings: everywhere.
QUOTED = r"(?<![\w.-])(?:{})(?=`|=|\":|': )"
NAMES = {
    QUOTED.format("|".join(names)): instead
    for instead, names in {
        "concurrent": ["beside", r"beside_\w+"],
        "significant": ["beyond_chance", "certain", "sure"],
        "channel": ["door"],
        "sweep": ["experiments?"],
        "target": ["expectations?"],
    }.items()
} | {
    # In registry files it is the floor, with a unit.
    r"(?<![\w.-])floor(?==|\":)": "floor_mb_s",
    r"\bstat=(?:expectation|expected|residual)\b": "vs_target, predicted, vs_predicted",
    r"\b(?:events|incidents)/\?(?:\S*&)?(?:kind|level|levels|conditions?)=": "scope, type",
    r"(?<!\w)/(?:api/v1/)?(?:changes|expectations|experiments)/": "events, targets, sweeps",
    r"\bmanage\.py (?:changes|experiment)\b": "sweep",
    r"\bsonar_\w*(?:beat|seal|calls|chang|experiment|expect)\w*": "a metric of today",
    # The file of Compose passes former settings on, so that Sonar refuses to start.
    rf"(?<![\w-])(?:{'|'.join(RETIRED)})(?![\w.]|:$)": "a setting of today",
}
WORDS = {re.compile(pattern, re.IGNORECASE): instead for pattern, instead in TERMS.items()}
CODE = {re.compile(pattern): instead for pattern, instead in NAMES.items()}
# Where a former term is right.
KEPT = {
    "activity": "flow labels have the number of an experiment and of an activity",
    "experiment-id": "a field of fireflies",
    "such as an experiment": "a virtual organisation",
    "dCache: pool behind a door": "dCache calls it so",
    "the door redirects": "of dCache",
    "the door passes": "of dCache",
    "(MOVER)": "a method of statistics",
    "commands call it mover": "the glossary says what the code calls it",
    "two vantages": "a reason of tests that wait, in the API and in metrics",
    "`lent`: delegated": "a value of the API",
    "sonar/notation/renamed.py": "former values, for errors that say the new ones",
}
SETTING = re.compile(r'env[a-z.]*\W*"([A-Z0-9_]+)"')
METRIC = re.compile(r'\bgauge\(\s*"(\w+)"')


# What describes a part of the schema of the API.
DESCRIBING = {"description", "summary", "title"}


class Text(NamedTuple):
    """A text, and where it is. A name or a file with code is no sentence."""

    place: str
    words: str
    is_code: bool = False


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def sentences_of(paths: Iterable[Path], texts: Callable[[Path], Iterator[str]]) -> Iterator[Text]:
    for path in paths:
        yield from (Text(name_of(path), words) for words in texts(path))


def files(paths: Iterable[Path]) -> Iterator[Text]:
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            yield Text(f"{name_of(path)}:{number}", line, is_code=True)


def openapi() -> Iterator[Text]:
    """Yield the names and descriptions of the schema as it is without a database."""
    from drf_spectacular.generators import SchemaGenerator
    from drf_spectacular.settings import spectacular_settings

    spectacular_settings.apply_patches({"POSTPROCESSING_HOOKS": []})
    try:
        schema = SchemaGenerator().get_schema(request=None, public=True)
    finally:
        spectacular_settings.clear_patches()
    for path, methods in schema["paths"].items():
        yield Text("OpenAPI", path, is_code=True)
        for method, operation in methods.items():
            place = f"OpenAPI: {method.upper()} {path}"
            yield from read_schema(operation, place)
            for parameter in operation.get("parameters", ()):
                values = parameter["schema"].get("enum", [""])
                for value in values:
                    yield Text(place, f"{path}?{parameter['name']}={value}", is_code=True)
    yield from read_schema({key: each for key, each in schema.items() if key != "paths"}, "OpenAPI")


def read_schema(node: object, place: str) -> Iterator[Text]:
    children = enumerate(node) if isinstance(node, list) else ()
    for key, value in node.items() if isinstance(node, dict) else children:
        if key == "properties":
            yield from (Text(place, f'"{name}":', is_code=True) for name in value)
        if key in DESCRIBING and isinstance(value, str):
            yield Text(place, value)
        elif key not in {"example", "examples"}:
            yield from read_schema(value, place)


def commands() -> Iterator[Text]:
    """Yield the help of every command, with its options and subcommands."""
    from django.core.management import get_commands, load_command_class

    for name, app in sorted(get_commands().items()):
        if app in ("sonar", "matrix"):
            place = f"manage.py {name}"
            yield Text(place, place, is_code=True)
            parser = load_command_class(app, name).create_parser("manage.py", name)
            yield from help_of(parser, place)


def help_of(parser: ArgumentParser, place: str) -> Iterator[Text]:
    yield Text(place, parser.description or "")
    for action in parser._actions:
        yield Text(place, action.help or "")
        for option in action.option_strings:
            yield Text(place, f"{option.lstrip('-').replace('-', '_')}=", is_code=True)
        if isinstance(action.choices, dict):
            for name, each in action.choices.items():
                yield from help_of(each, f"{place} {name}")


def columns() -> Iterator[Text]:
    """Yield the columns of every CSV file of the API, and of results."""
    from sonar.notation.result_columns import COLUMNS

    for column in COLUMNS:
        yield Text("CSV: results", f'"{column.name}":', is_code=True)
    for call, answers in json.loads(API_EXAMPLES.read_text()).items():
        for name in str(answers.get("csv", "")).partition("\n")[0].split(","):
            yield Text(f"CSV: {call}", f'"{name}":', is_code=True)


def settings() -> Iterator[Text]:
    source = "".join(path.read_text() for path in sorted(SETTINGS.glob("*.py")))
    yield from (Text("settings", name, is_code=True) for name in SETTING.findall(source))


def metrics() -> Iterator[Text]:
    path = ROOT / "matrix" / "answers" / "status" / "metrics.py"
    for name in METRIC.findall(path.read_text()):
        yield Text("/metrics", f"sonar_{name}", is_code=True)


def glossary() -> Iterator[Text]:
    for terms in tomllib.loads(GLOSSARY.read_text()).values():
        for term in terms:
            for key in ("name", "meaning"):
                yield Text(name_of(GLOSSARY), term[key])


def docs() -> Iterator[Text]:
    yield from sentences_of(DOCS, texts_of_markdown)
    yield from files(DOCS)


@cache
def read() -> dict[str, list[Text]]:
    """Return what people read, by where they do."""
    kinds = {
        "templates": sentences_of(TEMPLATES, texts_of_template),
        "JavaScript": sentences_of(SCRIPTS, texts_of_script),
        "strings": sentences_of(PYTHON, texts_of_module),
        "glossary": glossary(),
        "OpenAPI": openapi(),
        "examples of the API": files([API_EXAMPLES]),
        "help of commands": commands(),
        "CSV columns": columns(),
        "settings": settings(),
        "metrics": metrics(),
        "docs": docs(),
        "examples and units": files([*EXAMPLES, *DEPLOYED]),
    }
    return {kind: list(texts) for kind, texts in kinds.items()}


def retired() -> Iterator[tuple[str, Text, str, str]]:
    """Yield each former term that is left: its kind of text, the text, the term, its successor."""
    for kind, texts in read().items():
        for text in texts:
            for term, instead in retired_in(text):
                yield kind, text, term, instead


def retired_in(text: Text) -> Iterator[tuple[str, str]]:
    prose = "" if text.is_code else INLINE_CODE.sub("X", text.words)
    for patterns, searched in ((WORDS, prose), (CODE, text.words)):
        for pattern, instead in patterns.items():
            for at in pattern.finditer(searched):
                around = f"{text.place}: {searched[max(0, at.start() - 40) : at.end() + 40]}"
                if not any(map(around.__contains__, KEPT)):
                    yield at.group(), instead


def main() -> int:
    left = list(retired())
    for kind, text, term, instead in left:
        print(f"{text.place}: {term!r} is {instead} now ({kind}): {text.words[:200]}")
    counts = Counter(kind for kind, *_ in left)
    print(f"{'searched':22}{'texts':>8}{'retired terms left':>20}")
    for kind, texts in read().items():
        print(f"{kind:22}{len(texts):8}{counts[kind]:20}")
    return min(1, len(left))


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "sonar.settings")
    import django

    django.setup()
    sys.exit(main())
