"""The third step of *Add site*: a secret that is uploaded, or a credential that there is."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeAlias

from django import forms
from django.core.exceptions import ValidationError
from django.core.files.uploadedfile import UploadedFile
from django.db.models import QuerySet
from django.http import QueryDict
from django.utils.datastructures import MultiValueDict

from matrix.pages.site.work_forms import CHOICE, SMALL, line
from sonar.credentials import kinds, rules, uploads
from sonar.models import Credential, Endpoint
from sonar.notation.addresses import is_inside
from sonar.registry.shown_forms import ShownForm
from sonar.registry.uploads import NewSecret

Files: TypeAlias = "MultiValueDict[str, UploadedFile[bytes]]"
KINDS = [
    (kinds.FILE, "token (sent unchanged)"),
    (kinds.X509, "proxy certificate with its key"),
    ("client_credentials", "OAuth2 client secret (Sonar requests tokens from its issuer)"),
    ("macaroon", "token, or certificate with key (Sonar requests macaroons from the endpoint)"),
]
NOTHING = "Choose a file or paste its text."
BOTH = "Choose a file or paste its text, not both."
ISSUER_INSIDE = "This address is inside Sonar’s network. Ask an operator to add the credential."


class SecretText(forms.Textarea):
    """A text that never goes back to a browser, whatever is wrong with it."""

    def format_value(self, value: object) -> None:
        return None


class UploadForm(ShownForm, forms.Form):
    """A secret for an endpoint, ``secret`` once valid; operators may name any issuer."""

    row_attribute = "endpoint"

    kind = forms.ChoiceField(label="credential type", choices=KINDS, widget=CHOICE)
    content = forms.FileField(
        label="file",
        required=False,
        allow_empty_file=True,
        widget=forms.FileInput({"class": SMALL}),
    )
    text = forms.CharField(
        label="or paste its text",
        required=False,
        strip=False,
        max_length=uploads.MOST_BYTES,
        widget=SecretText(
            {"class": SMALL, "rows": 3, "cols": 50, "spellcheck": "false", "autocomplete": "off"}
        ),
    )
    issuer = line("issuer (https://…)", 400, 40)
    client_id = line("client ID", 200, 20)
    audience = line("audience (empty: the endpoint)", 400, 30)
    path_prefix = line("path prefix (for example, /atlas; optional)", 200, 20)
    lend_credential = forms.BooleanField(
        label="delegate this credential to the other endpoint of a transfer, so that it can read "
        "or write at this endpoint",
        required=False,
        widget=forms.CheckboxInput({"class": "form-check-input"}),
        help_text="Transfers from this endpoint wait until the endpoint has a delegated "
        "credential.",
    )
    secret: NewSecret

    OF_CLIENTS = ("issuer", "client_id", "audience", "path_prefix")

    def __init__(
        self,
        endpoint: Endpoint,
        now: datetime,
        data: QueryDict | None = None,
        files: Files | None = None,
        *,
        is_operator: bool = False,
    ) -> None:
        own = endpoint.credential
        initial: dict[str, Any] = {"lend_credential": endpoint.lend_credential}
        if own and own.is_uploaded:
            initial |= {name: getattr(own, name) for name in ("kind", *self.OF_CLIENTS)}
        super().__init__(data, files, auto_id="upload-%s", initial=initial)
        self.endpoint, self.now, self.is_operator = endpoint, now, is_operator

    def of_clients(self) -> list[forms.BoundField]:
        return [self[name] for name in self.OF_CLIENTS]

    def clean_issuer(self) -> str:
        issuer: str = self.cleaned_data["issuer"]
        host = rules.host_of_url(issuer)
        if host and not self.is_operator and is_inside(host.name):
            raise ValidationError(ISSUER_INSIDE)
        return issuer

    def clean(self) -> dict[str, Any]:
        """Look at the secret, then at the settings of its kind."""
        cleaned = super().clean() or {}
        if self.errors:
            return cleaned
        values = dict.fromkeys(kinds.SETTINGS, "")
        if cleaned["kind"] == "client_credentials":
            values |= {name: cleaned[name] for name in self.OF_CLIENTS}
        for name, sentence in kinds.problems(cleaned["kind"], values).items():
            self.add_error(name, sentence)
        try:
            upload = uploads.read(cleaned["kind"], self._sent(), self.now)
        except uploads.UploadError as error:
            self.add_error("content", str(error))
        else:
            self.secret = NewSecret(upload, cleaned["kind"], values)
        # Nothing of a form that is shown again, or told in an error, has it.
        return {name: value for name, value in cleaned.items() if name not in ("content", "text")}

    def _sent(self) -> bytes:
        """Return what was sent, by one of two ways; raise UploadError for none or both."""
        file: UploadedFile[bytes] | None = self.cleaned_data["content"]
        text: str = self.cleaned_data["text"]
        if file and text.strip():
            raise uploads.UploadError(BOTH)
        if not file and not text.strip():
            raise uploads.UploadError(NOTHING)
        return file.read(uploads.MOST_BYTES + 1) if file else text.encode()


class KnownForm(forms.Form):
    """A credential that there is; only those that may go to the host of the endpoint."""

    credential = forms.ModelChoiceField(
        Credential.objects.none(),
        label="credential",
        empty_label=None,
        widget=CHOICE,
        error_messages={
            "required": "Choose a credential.",
            "invalid_choice": "Choose a listed credential. Other credentials are not valid for "
            "the host of this endpoint.",
        },
    )

    def __init__(
        self, endpoint: Endpoint, choosable: QuerySet[Credential], data: QueryDict | None = None
    ) -> None:
        super().__init__(data, auto_id="known-%s", initial={"credential": endpoint.credential_id})
        choice = self.fields["credential"]
        choice.queryset = choosable  # type: ignore[attr-defined]


class FileNameForm(forms.Form):
    """The name of a file on the workers: administrators say where what is in it may go."""

    name = forms.RegexField(
        rules.NAME,
        label="file name in SONAR_CREDENTIALS_DIR",
        max_length=80,
        error_messages={"invalid": rules.NAME_SENTENCE, "required": "Enter a file name."},
        widget=forms.TextInput({"class": SMALL, "size": 24}),
    )
    kind = forms.ChoiceField(
        label="credential type",
        choices=[each for each in KINDS if each[0] != "client_credentials"],
        widget=CHOICE,
    )

    def __init__(self, data: QueryDict | None = None) -> None:
        super().__init__(data, auto_id="file-%s")

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"].strip()
        if Credential.objects.filter(name=name).exists():
            raise ValidationError(
                f"The credential {name} already exists. Choose it from the registered credentials, "
                "or set its hosts in the admin interface."
            )
        return name
