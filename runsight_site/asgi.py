"""The ASGI application: pages and API over HTTP, live updates over websockets."""

import os

from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "runsight_site.settings")
http = get_asgi_application()

from workflows_app import executors  # noqa: E402 - needs the apps loaded
from workflows_app.live.routing import websocket_urlpatterns  # noqa: E402 - needs the apps loaded

# No session middleware: a consumer looks up who is there itself, at the start and each minute.
application = ProtocolTypeRouter({"http": http, "websocket": URLRouter(websocket_urlpatterns)})

# Here and not in ready(), which every command and test calls too.
executors.start_once()
