"""Static files from their packages, or from `collectstatic`, without a second server."""

from collections.abc import Awaitable
from typing import Any

from asgiref.sync import iscoroutinefunction, markcoroutinefunction, sync_to_async
from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]  # it ships no types
    """WhiteNoise, answering with whole bodies: under ASGI Django warns of each file streamed synchronously."""

    # Otherwise every request below would hold a thread for as long as it lasts.
    async_capable = True

    def __init__(self, get_response: Any = None, *args: Any) -> None:
        super().__init__(get_response, *args)
        if iscoroutinefunction(get_response):
            markcoroutinefunction(self)

    def __call__(self, request: HttpRequest) -> HttpResponse | Awaitable[HttpResponse]:
        if iscoroutinefunction(self):
            return self._answer(request)
        answer: HttpResponse = super().__call__(request)
        return answer

    async def _answer(self, request: HttpRequest) -> HttpResponse:
        if self.autorefresh:
            found = await sync_to_async(self.find_file)(request.path_info)
        else:
            found = self.files.get(request.path_info)
        if found is not None:
            return await sync_to_async(self.serve)(found, request)
        answer: HttpResponse = await self.get_response(request)
        return answer

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        """The file as one body; ours are small, and ranges and 304s are WhiteNoise's work."""
        answer = static_file.get_response(request.method, request.META)
        body = b""
        if answer.file is not None:
            with answer.file as file:
                body = file.read()
        response = HttpResponse(body, status=int(answer.status))
        del response.headers["Content-Type"]
        for name, value in answer.headers:
            response.headers[name] = value
        return response
