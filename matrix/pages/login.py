"""Log-in leads back to where it began; a site admin who came from nowhere lands on the own site."""

from __future__ import annotations

from typing import cast

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.models import User
from django.contrib.auth.views import LoginView
from django.http import HttpResponse

from matrix.http import my_site
from matrix.query.addresses import address
from sonar import roles
from sonar.roles import Role


class LogIn(LoginView):
    """Django's view, which follows `next` to addresses of this Sonar alone."""

    template_name = "login.html"
    # Django's takes PUT as well, as another way to POST.
    http_method_names = ["get", "head", "options", "post"]

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Begin the session; the site of a site admin becomes "My site" where none was chosen."""
        response = super().form_valid(form)
        name = self.own_site()
        if name and not my_site.my_site(self.request):
            my_site.remember(self.request, response, name)
        return response

    def get_default_redirect_url(self) -> str:
        name = self.own_site()
        return address("site", name) if name else address("matrix")

    def own_site(self) -> str:
        """Return the chosen one of a site admin's sites, or the first; empty for other roles."""
        user = cast(User, self.request.user)
        if roles.role_of(user) is not Role.SITE_ADMIN:
            return ""
        names = list(user.administered_sites.order_by("name").values_list("name", flat=True))
        chosen = my_site.my_site(self.request)
        return chosen if chosen in names else names[0]
