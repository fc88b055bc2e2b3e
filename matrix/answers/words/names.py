"""Names freed of what many of them share: what lists and sentences call endpoints and sites.

Full names stand once on a page: in its heading, in a table or on hover.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache

from matrix.statistics.cells.axes import AxisGroup, EndpointInfo

LONGEST_LISTED = 24
# What stands between hyphens in so many names says nothing of any of them: UKI, LCG2.
FEWEST_SHARING = 3
# What a process keeps of names: lists of them, each 0.3 MB of a thousand endpoints, and names.
MOST_KEPT, MOST_NAMES = 8, 5000
# Names with the labels of what they stand for.
Labelled = tuple[tuple[str, str | None], ...]
# Every name as it is.
NO_NAMES: Mapping[str, str] = {}


def shortened(
    groups: Sequence[AxisGroup] | Sequence[EndpointInfo], ending: str
) -> tuple[dict[str, str], list[str]]:
    """Return what is written of each name, and the parts that are left out of some.

    A name keeps its parts where what would be left of it is no word, or that of another name.
    """
    texts, left_out = shortened_texts(labelled(groups), ending)
    return dict(texts), list(left_out)


@lru_cache(MOST_KEPT)
def shortened_texts(names: Labelled, ending: str) -> tuple[Mapping[str, str], Sequence[str]]:
    """Return the same of names and their labels; all parts of a page ask for the same ones."""
    split = {name: split_text(name, label) for name, label in names}
    counts = Counter(part for base, _ in split.values() for part in set(base.split("-")))
    shorter = {
        name: "-".join(part for part in base.split("-") if counts[part] < FEWEST_SHARING)
        for name, (base, _) in split.items()
    }
    tails = {name: "" if ending else tail for name, (_, tail) in split.items()}
    uses = Counter(shorter[name] + tails[name] for name in split)
    texts, left_out = {}, Counter[str]()
    for name, (base, _) in split.items():
        text = shorter[name] + tails[name]
        is_word = any(letter.isalpha() for letter in shorter[name]) and uses[text] == 1
        texts[name] = text if is_word else base + tails[name]
        if is_word:
            left_out.update(set(base.split("-")) - set(shorter[name].split("-")))
    return texts, [part for part, _ in left_out.most_common()]


def labelled(groups: Sequence[AxisGroup] | Sequence[EndpointInfo]) -> Labelled:
    return tuple((group.name, group.label) for group in groups)


@lru_cache(MOST_NAMES)
def split_text(name: str, label: str | None) -> tuple[str, str]:
    """Split the label and the sign before it off a name that ends so."""
    length = len(label) + 1 if label else 0
    tail = name[len(name) - length :]
    is_label = tail[:1] in ("_", "-", ".") and tail[1:] == label
    return (name[:-length], tail) if is_label and length < len(name) else (name, "")


def shared_ending(groups: Sequence[AxisGroup] | Sequence[EndpointInfo]) -> str:
    """Return the label with the sign before it, if every name ends so: `_DATADISK`."""
    return ending_of(labelled(groups))


@lru_cache(MOST_KEPT)
def ending_of(names: Labelled) -> str:
    endings = {split_text(*name)[1] for name in names}
    return endings.pop() if len(endings) == 1 else ""


def short_names_of(groups: Sequence[AxisGroup] | Sequence[EndpointInfo]) -> dict[str, str]:
    """Return names for lists: cut, unless two would be called alike."""
    return dict(cut_texts(labelled(groups)))


@lru_cache(MOST_KEPT)
def cut_texts(names: Labelled) -> Mapping[str, str]:
    texts, _ = shortened_texts(names, ending_of(names))
    short = {name: cut(text, LONGEST_LISTED) for name, text in texts.items()}
    shared = Counter(short.values())
    return {name: text if shared[text] == 1 else name for name, text in short.items()}


def uncut_names_of(groups: Sequence[AxisGroup] | Sequence[EndpointInfo]) -> dict[str, str]:
    """Return names without what many share, each as long as it then is."""
    texts, _ = shortened(groups, shared_ending(groups))
    return texts


def cut(name: str, longest: int) -> str:
    """Cut a name in the middle, where names differ least: UKI-NORTHGRID-MAN…DATADISK."""
    if len(name) <= longest:
        return name
    tail = (longest - 1) // 3
    return f"{name[: longest - 1 - tail]}…{name[-tail:]}"
