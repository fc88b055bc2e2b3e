"""The door for saved views: names and addresses are checked here, each account has its own."""

from collections.abc import Callable
from urllib.parse import unquote, urlsplit

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.urls import Resolver404, get_script_prefix, resolve

from sonar.models import SavedView
from sonar.models.token import LONGEST_ADDRESS, LONGEST_NAME

MOST = 100


class SavedViewError(ValueError):
    """A view that cannot be kept so; the sentence says why."""


def of(user: User) -> QuerySet[SavedView]:
    return SavedView.objects.filter(user=user)


def save(user: User, name: str, address: str) -> SavedView:
    """Keep a view; raises SavedViewError. Two that are saved at once wait for each other."""
    view = SavedView(user=user, name=checked_name(name), address=checked_address(address))
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        if of(user).count() >= MOST:
            raise SavedViewError(f"You already have {MOST} views, the maximum: delete one first.")
        store(view, view.save)
    return view


def rename(view: SavedView, name: str) -> None:
    """Give a view another name, if it is still there; raises SavedViewError."""
    view.name = checked_name(name)
    store(view, lambda: SavedView.objects.filter(pk=view.pk).update(name=view.name))


def store(view: SavedView, write: Callable[[], object]) -> None:
    try:
        with transaction.atomic():
            write()
    except IntegrityError:
        sentence = f"You already have a view “{view.name}”: choose another name."
        raise SavedViewError(sentence) from None


def checked_name(text: str) -> str:
    name = text.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise SavedViewError(
            f"The name of a view must have 1 to {LONGEST_NAME} printable characters."
        )
    return name


def checked_address(text: str) -> str:
    """Return path and query of a page of this Sonar: never another host, nothing that is none."""
    address = text.strip()
    if len(address) > LONGEST_ADDRESS:
        sentence = f"An address may have at most {LONGEST_ADDRESS} characters, not {len(address)}."
        raise SavedViewError(sentence)
    own = address.startswith(get_script_prefix()) and not address.startswith("//")
    if not (own and address.isprintable() and "\\" not in address and is_page(address)):
        raise SavedViewError(
            f"The address “{address}” is not a page of this Sonar instance. Enter a path and the "
            "part after the question mark, without a host, for example "
            f"{get_script_prefix()}table/?size=small.",
        )
    return address.partition("#")[0]


def is_page(address: str) -> bool:
    """Say whether a path below the root leads to anything that people open."""
    path = unquote(urlsplit(address).path).removeprefix(get_script_prefix().rstrip("/"))
    try:
        return resolve(path).namespace != "admin" and not path.startswith("/api/")
    except Resolver404:
        return False
