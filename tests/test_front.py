"""Templates, style sheets and scripts as texts: how wide they are, and who loads what."""

import json
import re
import shutil
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django import Settings

from sonar import settings as project

PROJECT = Path(__file__).resolve().parent.parent
TEMPLATES = PROJECT / "templates"
SCRIPTS = PROJECT / "static" / "js"
PAGES = sorted(TEMPLATES.rglob("*.html"))
# What a browser opens; parts stand in them.
WHOLE_PAGES = sorted(TEMPLATES.glob("*.html"))
MODULES = {path.relative_to(SCRIPTS).as_posix(): path for path in sorted(SCRIPTS.rglob("*.js"))}
STYLES = sorted((PROJECT / "static" / "css").rglob("*.css"))
WIDEST = 120

INCLUDE = re.compile(r"""\{% include "([^"]+)"[^%]*%\}""")
SCRIPT_TAG = re.compile(r"<script\b[^>]*\bsrc=[^>]*>")
SOURCE = re.compile(r"""(?:src|href)="\{% static 'js/([^']+)' %\}\"""")
PRELOAD = re.compile(r'<link rel="modulepreload" [^>]*>')
IMPORT = re.compile(r"""^(?:import|export)\b[^;'"]*?["'](\.[^"']+)["'];""", re.MULTILINE)
# A library that is no module hangs on the window: there each is read in one place.
LIBRARIES = {"page.js": "htmx", "picture.js": "Plotly", "api-docs.js": "SwaggerUIBundle"}


def code_of(path: Path) -> str:
    """Return a script without its comments, which stand on lines of their own or behind code."""
    return re.sub(r"(?m)(^|\s)//.*$", "", path.read_text())


def text_of(page: Path) -> str:
    """Return a template with what it includes in its place."""
    return INCLUDE.sub(lambda part: text_of(TEMPLATES / part[1]), page.read_text())


def imported(name: str) -> set[str]:
    """Return the modules that one imports, and those that they import."""
    found: set[str] = set()
    for text in IMPORT.findall(MODULES[name].read_text()):
        target = (MODULES[name].parent / text).resolve().relative_to(SCRIPTS).as_posix()
        found |= {target, *imported(target)}
    return found


def test_no_line_is_wider_than_an_editor():
    wide = [
        f"{path.relative_to(PROJECT)}:{at}: {line}"
        for path in (*PAGES, *STYLES, *MODULES.values())
        for at, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > WIDEST
    ]
    assert wide == []


def test_every_script_of_ours_is_loaded_as_a_module():
    tags = [tag for page in PAGES for tag in SCRIPT_TAG.findall(page.read_text())]
    ours = [tag for tag in tags if SOURCE.search(tag)]
    assert ours
    assert [tag for tag in ours if 'type="module"' not in tag] == []
    assert [tag for tag in tags if tag not in ours and " defer " not in tag] == []
    scripts = {name for page in WHOLE_PAGES for name in SOURCE.findall(text_of(page))}
    assert scripts == set(MODULES)


def test_no_module_hangs_anything_on_the_window():
    """Each names the window only where it reads the library that hangs there, if at all."""
    for name, path in MODULES.items():
        library = LIBRARIES.get(name)
        reading = rf"const {{ {library} }} = window;|window\.{library}\(" if library else "$^"
        code, readings = re.subn(reading, "", code_of(path))
        assert readings == (library is not None), name
        assert not re.search(r"\b(window|globalThis|self|use strict)\b", code), name


def test_each_library_is_used_by_one_module():
    for home, library in LIBRARIES.items():
        use = re.compile(rf"\b{library}\b(?!:)")  # not the name of an event
        assert {name for name, path in MODULES.items() if use.search(code_of(path))} == {home}


def scripts_of(text: str) -> set[str]:
    return {name for tag in SCRIPT_TAG.findall(text) for name in SOURCE.findall(tag)}


def test_what_a_page_imports_is_preloaded_and_the_library_of_pictures_loaded_after_itself():
    for page in WHOLE_PAGES:
        text = text_of(page)
        scripts = scripts_of(text)
        modules = scripts.union(*(imported(name) for name in scripts))
        preloaded = [name for tag in PRELOAD.findall(text) for name in SOURCE.findall(tag)]
        needed = modules - scripts
        if page.name != "base.html":
            needed -= {"page.js", *imported("page.js")}
        assert sorted(preloaded) == sorted(needed), page.name
        tags = re.findall(r"<(?:link|script)\b[^>]*plotly[^>]*>", text)
        kinds = [("data-library" in tag, 'fetchpriority="low"' in tag) for tag in tags]
        assert kinds == ([(True, True)] if "picture.js" in modules else []), page.name


@pytest.fixture
def laid_out(tmp_path: Path, settings: Settings) -> Path:
    """Lay the scripts out as production does, and return where."""
    settings.STORAGES = settings.STORAGES | {"staticfiles": project.STORAGES["staticfiles"]}
    settings.STATICFILES_FINDERS = ["django.contrib.staticfiles.finders.FileSystemFinder"]
    settings.STATICFILES_DIRS = [tmp_path / "source"]
    settings.STATIC_ROOT = tmp_path / "root"
    shutil.copytree(SCRIPTS, tmp_path / "source" / "js")
    call_command("collectstatic", interactive=False, verbosity=0)
    return tmp_path / "root"


def test_what_is_sent_has_no_comments_and_all_other_lines_where_they_stood(laid_out: Path):
    names = json.loads((laid_out / "staticfiles.json").read_text())["paths"]
    for name, path in MODULES.items():
        target = laid_out / names[f"js/{name}"]
        there, here = target.read_text().splitlines(), path.read_text().splitlines()
        # What a line begins with is not sent: no string goes on in the next one.
        assert [line for line in here if line.count("`") % 2] == [], name
        for sent, line in zip(there, here, strict=True):
            text = line.lstrip()
            kept = "" if text.startswith("//") else text
            assert sent == kept or IMPORT.match(text) or "import" in text
        # Modules import each other by names that change with the contents.
        plain = [(path.parent / text).resolve() for text in IMPORT.findall(path.read_text())]
        hashed = [(target.parent / text).resolve() for text in IMPORT.findall(target.read_text())]
        keys = [f"js/{one.relative_to(SCRIPTS).as_posix()}" for one in plain]
        assert hashed == [laid_out / names[key] for key in keys]
