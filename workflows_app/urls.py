"""Pages and API of the workflows."""

from typing import Any

urlpatterns: list[Any] = []
