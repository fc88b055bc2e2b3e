"""The forms by which people order tests, and a sweep on a link; and ordering them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import chain, product
from typing import Any, TypeVar, cast

from django import forms
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.http import HttpRequest, QueryDict
from django.utils import timezone
from django.utils.text import capfirst

from matrix.answers.ordering import probe_requests
from matrix.answers.ordering.probe_requests import (
    ALLOWED,
    ALLOWED_IN_SWEEPS,
    MOST_STREAMS,
    MOST_TESTS,
    USUAL_REPEATS,
    form_values,
    sentence,
)
from matrix.query.forms import DEFAULT_SIZE, BadQueryError, OneOf, check_names
from sonar.models import Endpoint, SizeClass, Sweep
from sonar.models.mesh import Mode
from sonar.movers import catalogue
from sonar.notation.enumeration import either
from sonar.ordering import request_probes
from sonar.ordering.request_probes import SAME_ENDS, ProbeRequest, SweepRequest

NO_END = {"required": "Enter the name of an endpoint, or of a site with one endpoint."}
NOTHING_TO_COMPARE = "The tests already use 1 stream: enter more streams, or clear this box."
ENDS = ("source", "destination")
SMALL = "form-control form-control-sm"
SELECT = "form-select form-select-sm"
LONGEST_VALUES = 200
PRESET = ("variable", "size")
Link = tuple[Endpoint, Endpoint]


def by_label(label: str, name: str, text: str) -> str:
    """Begin a sentence of the API by what the form calls the field, without its brackets."""
    rest = text.removeprefix(f"{name} ")
    return capfirst(f"{label.partition(' (')[0]} {rest}" if rest != text else text)


def ends() -> list[tuple[str, str]]:
    """Return the names that a test may have at an end, and what each is: sites, then endpoints."""
    rows = Endpoint.objects.in_use().values_list("name", "site__name", "base_url")
    by_site: dict[str, list[str]] = {}
    with_files: dict[str, list[str]] = {}
    for name, site, base_url in rows.order_by("site__name", "name"):
        by_site.setdefault(site, []).append(name)
        if catalogue.carries_files(base_url):
            with_files.setdefault(site, []).append(name)
    sites = [
        (site, names[0] if len(names) == 1 else f"a site with {len(names)} endpoints")
        for site, names in (by_site | with_files).items()
    ]
    return sites + [(name, site) for site, names in by_site.items() for name in names]


def text_field(label: str) -> forms.CharField:
    attrs = {"class": SMALL, "list": "ends", "size": 28, "autocapitalize": "none"}
    return forms.CharField(
        label=label, max_length=80, error_messages=NO_END, widget=forms.TextInput(attrs)
    )


def whole_field(
    label: str, name: str, most: int, initial: int, allowed: Mapping[str, str] = ALLOWED
) -> forms.IntegerField:
    attrs = {"class": SMALL, "min": 1, "max": most, "title": f"a whole number from 1 to {most}"}
    return forms.IntegerField(
        label=label,
        initial=initial,
        required=False,
        error_messages={"invalid": by_label(label, name, sentence(name, "", allowed))},
        widget=forms.NumberInput(attrs),
    )


def select_field(label: str, **more: Any) -> forms.CharField:  # noqa: ANN401 - of a Django field
    return forms.CharField(label=label, widget=forms.Select({"class": SELECT}), **more)


class SelectAmongPossible(forms.Select):
    """A select with disabled options: ``reasons`` say why, by value."""

    reasons: Mapping[str, str]

    def create_option(self, name: str, value: Any, label: Any, *args: Any, **more: Any) -> Any:  # noqa: ANN401 - Django's signature
        reason = self.reasons.get(str(value))
        shown = f"{label} ({reason})" if reason else label
        option = super().create_option(name, value, shown, *args, **more)
        if reason:
            option["attrs"]["disabled"] = True
        return option


def tick(label: str) -> forms.BooleanField:
    box = forms.CheckboxInput({"class": "form-check-input"})
    return forms.BooleanField(label=label, required=False, widget=box)


def movers_of(link: Link) -> list[str]:
    """Return the movers that move files of both ends in any of their modes."""
    base_urls = {endpoint.name: endpoint.base_url for endpoint in link}
    return [
        mover.name
        for mover in catalogue.MOVERS
        if not all(mover.scheme_mismatch(mode, base_urls) for mode in mover.modes)
    ]


class OrderForm(forms.Form):
    """An order of tests of a link, which may be fixed. What may be is said as in the API."""

    link: Link | None = None

    def begin(self, link: Link | None) -> None:
        """Offer size classes, modes, and the movers that fit; of one there is nothing to choose."""
        self.link = link
        self.sizes = list(SizeClass.objects.values_list("name", flat=True))
        self.offer("size", self.sizes)
        self.offer("mode", Mode.choices)
        movers = movers_of(link) if link else catalogue.names()
        self.offer("mover", [("", "automatic"), *((name, name) for name in movers)])
        if link and len(movers) < 2:
            self.fields["mover"].widget = forms.HiddenInput()

    def offer(self, name: str, choices: Iterable[str | tuple[str, str]]) -> None:
        pairs = [(each, each) if isinstance(each, str) else each for each in choices]
        self.fields[name].widget = forms.Select({"class": SELECT}, pairs)

    def chosen_mover(self, link: Link) -> str:
        return self.cleaned_data["mover"] or (movers_of(link) or [catalogue.DEFAULT])[0]

    def refuse(self, errors: Mapping[str, Sequence[str]]) -> None:
        """Say each sentence by its field, or above the form where there is none."""
        for field, texts in errors.items():
            for text in texts:
                self.say(field, field, text)

    def say(self, name: str, field: str, text: str) -> None:
        """Say a sentence on a field of the API by the field of a name here, if that is shown."""
        shown = name in self.fields and not self.fields[name].widget.is_hidden
        label = str(self.fields[name].label) if name in self.fields else field
        self.add_error(name if shown else None, by_label(label, field, text))


class ProbeForm(OrderForm):
    """Tests of a link, by endpoints or sites; ``link`` fixes it, and leaves out both fields.

    Once it is valid, ``probe_requests`` are in the order in which they are to run: directions and
    streams take turns.
    """

    source = text_field("from")
    destination = text_field("to")
    size = select_field("size class", error_messages={"required": "Choose a size class."})
    count = whole_field("number of tests", "count", MOST_TESTS, 1)
    streams = whole_field("streams (TCP connections)", "streams", MOST_STREAMS, 1)
    mode = select_field("mode", required=False)
    mover = select_field("transfer tool", required=False)
    compare = tick("also test with 1 stream, to compare")
    both = tick("both directions")

    def __init__(
        self,
        data: QueryDict | None = None,
        link: Link | None = None,
        initial: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(data, auto_id="test-%s", initial=dict(initial or {}))
        self.probe_requests: Sequence[ProbeRequest] = ()
        self.begin(link)
        if DEFAULT_SIZE in self.sizes:
            self.initial.setdefault("size", DEFAULT_SIZE)
        if link:
            del self.fields["source"], self.fields["destination"]

    def clean_source(self) -> Endpoint:
        return self.end("source")

    def clean_destination(self) -> Endpoint:
        return self.end("destination")

    def clean_size(self) -> str:
        text: str = self.cleaned_data["size"]
        if text not in self.sizes:
            raise ValidationError(f"“{text}” is not a size class.")
        return text

    def end(self, field: str) -> Endpoint:
        """Return the endpoint that a name stands for; offer those of a site that has several."""
        text = self.cleaned_data[field]
        endpoints = probe_requests.endpoints_of(text)
        if endpoints is None:
            raise ValidationError(f"“{text}” is neither a registered endpoint nor a site.")
        if not endpoints:
            raise ValidationError(f"The site {text} has no endpoint in use.")
        if len(endpoints) > 1:
            names = [endpoint.name for endpoint in endpoints]
            self.offer(field, [(text, f"choose an endpoint of {text}"), *names])
            raise ValidationError(f"{text} has {len(names)} endpoints: choose {either(names)}.")
        return endpoints[0]

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or {}
        if cleaned.get("compare") and cleaned.get("streams") == 1:
            self.add_error("compare", NOTHING_TO_COMPARE)
        if not self.errors:
            self.link = self.link or (cleaned["source"], cleaned["destination"])
            if self.link[0] == self.link[1]:
                self.add_error("destination", SAME_ENDS)
            else:
                self.read(cleaned, self.link)
        return cleaned

    def read(self, cleaned: Mapping[str, Any], link: Link) -> None:
        """Read what is to run, one test after the other; what is wrong is said by its field."""
        tests = {
            "sizes": [cleaned["size"]],
            "mover": self.chosen_mover(link),
            "mode": cleaned["mode"] or Mode.PULL.value,
            **({"count": cleaned["count"]} if "count" in self.data else {}),
        }
        directions = [link, link[::-1]] if cleaned["both"] else [link]
        streams = [cleaned["streams"] if "streams" in self.data else 1]
        streams += [1] if cleaned["compare"] else []
        try:
            series = [
                probe_requests.read_tests(
                    tests | {"source": start.name, "destination": end.name, "streams": number}
                )
                for (start, end), number in product(directions, streams)
            ]
        except BadQueryError as error:
            self.refuse(error.errors)
        else:
            self.probe_requests = list(chain.from_iterable(zip(*series, strict=True)))

    def refuse(self, errors: Mapping[str, Sequence[str]]) -> None:
        """Say each sentence once, by its field, or above the form where there is none."""
        ends = {end.name: field for end, field in zip(self.link or (), ENDS, strict=False)}
        sentences = {text: field for field, texts in errors.items() for text in texts}
        for text, field in sentences.items():
            # Both ways each end is a source and a destination: its name says which field it is.
            name = ends.get(text.partition(" ")[0], "size" if field == "sizes" else field)
            self.say(name, field, text)


def read_preset(params: QueryDict) -> dict[str, str]:
    """Read what an address fills into the form; raise BadQueryError for what cannot be there."""
    check_names(params, PRESET)
    if not params:
        return {}
    form = forms.Form(params)
    sizes = list(SizeClass.objects.values_list("name", flat=True))
    form.fields |= {
        "variable": OneOf("variable", Sweep.Variable.values),
        "size": OneOf("size", sizes),
    }
    if not form.is_valid():
        raise BadQueryError({name: list(map(str, texts)) for name, texts in form.errors.items()})
    return {name: value for name in PRESET if (value := form.cleaned_data[name])}


class SweepForm(OrderForm):
    """A sweep over one variable. Once the form is valid, ``sweep_request`` has its tests."""

    variable = select_field("setting to vary", initial=Sweep.Variable.STREAMS.value)
    values = forms.CharField(
        label="values",
        required=False,
        max_length=LONGEST_VALUES,
        widget=forms.TextInput(
            {"class": SMALL, "size": 18, "placeholder": "1, 2, 4, 8, 16", "autocapitalize": "none"}
        ),
        help_text="Default, depending on the setting: 1, 2, 4, 8 and 16 streams; all size classes; "
        "or pull and push.",
    )
    repeats = whole_field(
        "tests for each value", "repeats", MOST_TESTS, USUAL_REPEATS, ALLOWED_IN_SWEEPS
    )
    size = select_field("size class", required=False)
    streams = whole_field("streams", "streams", MOST_STREAMS, 1)
    mode = select_field("mode", required=False)
    mover = select_field("transfer tool", required=False)

    def __init__(
        self, link: Link, data: QueryDict | None = None, preset: Mapping[str, str] | None = None
    ) -> None:
        initial = {"size": DEFAULT_SIZE, **(preset or {})}
        super().__init__(data, auto_id="sweep-%s", initial=initial)
        self.sweep_request: SweepRequest | None = None
        self.begin(link)
        choices = SelectAmongPossible({"class": SELECT}, Sweep.Variable.choices)
        base_urls = {endpoint.name: endpoint.base_url for endpoint in link}
        choices.reasons = probe_requests.why_not_varied(movers_of(link), base_urls)
        self.fields["variable"].widget = choices
        if initial.get("variable", Sweep.Variable.STREAMS) in choices.reasons:
            possible = (name for name in Sweep.Variable if name not in choices.reasons)
            self.initial["variable"] = next(possible, "")

    def clean(self) -> dict[str, Any]:
        """Read what a script would send; what is empty is left out."""
        cleaned = super().clean() or {}
        if self.errors or self.link is None:
            return cleaned
        source, destination = self.link
        choices = self.fields["variable"].widget
        if reason := cast(SelectAmongPossible, choices).reasons.get(cleaned["variable"]):
            self.add_error("variable", f"This setting cannot be varied: {reason}.")
            return cleaned
        same = {name: cleaned[name] for name in ("variable", "repeats", "size", "streams", "mode")}
        fields = {
            "source": source.name,
            "destination": destination.name,
            "values": form_values(cleaned["values"], cleaned["variable"]),
            "mover": self.chosen_mover(self.link),
            **same,
        }
        body = {name: value for name, value in fields.items() if value not in ("", None)}
        try:
            self.sweep_request = probe_requests.read_sweep(body)
        except BadQueryError as error:
            self.refuse(error.errors)
        return cleaned


Placed = TypeVar("Placed")


def refused(request: HttpRequest, form: ProbeForm, user: User) -> int:
    """Order what a form asks for and return 0, or the status with which it was refused and why."""
    if not form.is_valid():
        return 400
    tests = form.probe_requests
    ordered, status = place(form, tests, user, lambda now: request_probes.order(tests, now))
    if ordered is None:
        return status
    number = len(ordered)
    said = ["1 test was requested." if number == 1 else f"{number} tests were requested."]
    for field in ENDS:
        # Which endpoint the name of a site stands for.
        endpoint, text = form.cleaned_data.get(field), form.data.get(field, "").strip()
        if endpoint and text.casefold() != endpoint.name.casefold():
            said.append(f"For the site {endpoint.site.name}, its endpoint {endpoint.name} is used.")
    messages.success(request, " ".join(said))
    return 0


def place(
    form: OrderForm, tests: Sequence[ProbeRequest], user: User, order: Callable[[datetime], Placed]
) -> tuple[Placed | None, int]:
    """Order the tests of a valid form, or say in it why not; return what was ordered, and a status.

    ``order`` does it, at a moment, and raises what request_probes.order() does.
    """
    if sentence := probe_requests.refusal_for(user, tests):
        form.refuse({"source": [sentence]})
        return None, 403
    try:
        return order(timezone.now()), 302
    except request_probes.RefusedError as error:
        form.refuse(error.errors)
        return None, 409
    except request_probes.PlannerBusyError as error:
        form.refuse({"": [str(error)]})
        return None, 503
