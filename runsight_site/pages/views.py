"""Pages of the site itself."""

from django.contrib.auth.decorators import login_not_required
from django.contrib.auth.views import PasswordChangeView
from django.contrib.messages.views import SuccessMessageMixin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.templatetags.static import static
from django.views.decorators.cache import cache_control

from runsight_site.pages import styleguide as samples


@login_not_required
def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """What a page says was not found; what Django says of an address or a query is for developers."""
    text = str(exception.args[0]) if exception.args and isinstance(exception.args[0], str) else ""
    is_ours = "matches the given query" not in text
    return render(request, "404.html", {"exception": text if is_ours else ""}, status=404)


@login_not_required
@cache_control(max_age=86400, public=True)
def favicon(request: HttpRequest) -> HttpResponse:
    """The icon, for what asks for it without having read a page (bookmarks, the pages of the API)."""
    return HttpResponseRedirect(static("img/favicon.svg"))


class ChangePassword(SuccessMessageMixin, PasswordChangeView):  # type: ignore[type-arg]  # generic only in its stubs
    """Everybody's own password; other sessions of theirs end with it."""

    template_name = "registration/password.html"
    success_url = "/"
    success_message = "Your password is changed."


def styleguide(request: HttpRequest) -> HttpResponse:
    """Every component in every state, for whoever builds or reviews a page."""
    if not request.user.is_staff:
        raise PermissionDenied("The style guide is for staff.")
    return render(request, "site/styleguide.html", samples.context())
