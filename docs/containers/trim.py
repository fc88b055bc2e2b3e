"""Leave of installed packages what runs: `python trim.py site-packages`, in the Dockerfile.

What is never used goes, libraries lose the names that only debuggers read (by `strip`), and Python
is kept as bytecode alone: tracebacks still have the files and lines.
"""

import compileall
import shutil
import subprocess
import sys
from pathlib import Path

# What packages bring for those who develop them, or for what nobody does here.
UNUSED = (
    *("**/tests", "**/benchmarks", "**/locale/*/LC_MESSAGES"),
    *("**/*.pyi", "**/*.pyx", "**/*.pxd", "**/*.c", "**/*.h", "**/*.a", "*.dist-info/RECORD"),
    # Figures are dicts here: no classes of their parts, no notebooks, no examples.
    *(
        "plotly/graph_objs/*/",
        "plotly/graph_objs/_*.py",
        "plotly/validators",
        "plotly/labextension",
    ),
    *("plotly/package_data/datasets", "plotly/package_data/*.js"),
    *("plotly/express", "plotly/figure_factory", "plotly/matplotlylib"),
    # A compiler's front end, the builder of numpy itself, and what its own tests call.
    *("numpy/f2py", "numpy/distutils", "numpy/_core/_simd.*"),
    # Pictures are PNG.
    *("PIL/_avif.*", "PIL/_webp.*", "PIL/_imagingcms.*"),
    *(f"pillow.libs/lib{name}-*" for name in ("avif", "webpmux", "webpdemux", "webp", "lcms2")),
    # Nothing is hyphenated, and fonts are only read, as Debian has them.
    *("pyphen/dictionaries/*.dic", "zopfli", "zopfli-*.dist-info"),
    *(f"fontTools/{name}" for name in ("cu2qu", "merge", "mtiLib", "qu2cu", "ufoLib", "voltLib")),
    "django/contrib/gis",
    "pydantic/v1",
)
# Of the ways to log in that allauth knows, the one that Sonar has, and what this is made of.
PROVIDERS = ("__init__.py", "base", "oauth", "oauth2", "openid_connect")


def remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    elif path.name != "__init__.py":
        path.unlink(missing_ok=True)


def trim(packages: Path) -> None:
    for pattern in UNUSED:
        for path in list(packages.glob(pattern)):
            remove(path)
    for path in (packages / "allauth/socialaccount/providers").glob("*"):
        if path.name not in PROVIDERS:
            remove(path)


def strip(packages: Path) -> None:
    """Take tables of names out of modules; what wheels bundle as `*.libs` would not load then."""
    modules = [path for path in packages.rglob("*.so") if path.is_file()]
    modules = [path for path in modules if not any(part.endswith(".libs") for part in path.parts)]
    subprocess.run(["strip", "--strip-unneeded", *modules], check=True)


def keep_bytecode(packages: Path) -> None:
    if not compileall.compile_dir(packages, quiet=1, legacy=True, workers=0):
        raise SystemExit("Not all of the packages could be compiled.")
    for path in packages.rglob("*.py"):
        path.unlink()


if __name__ == "__main__":
    directory = Path(sys.argv[1])
    trim(directory)
    strip(directory)
    keep_bytecode(directory)
