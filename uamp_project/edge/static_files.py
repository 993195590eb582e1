"""Static files: cached for good below their digest, and found at every address that had them."""

import re
from typing import TYPE_CHECKING, Final

from servestatic.middleware import ServeStaticMiddleware

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

_PREFIX: Final = re.compile(r"/static/(?:[0-9a-f]{12}/)?")
# The build puts a digest into the names of bundles.
_BUNDLE: Final = re.compile(r"/static/(?:[0-9a-f]{12}/)?dist/[\w-]+-[0-9A-Z]{8}\.(?:css|js)")
_UNVERSIONED: Final = "max-age=60, public"


class StaticFilesMiddleware(ServeStaticMiddleware):
    """Serves static files below STATIC_URL, and the same files without or with another digest.

    A page of the release before still loads its later modules, and programs import the client from
    `/static/uamp/`.
    """

    async def __call__(self, request: "HttpRequest") -> "HttpResponseBase":
        """Answer with the file, or pass the request on."""
        path = request.path_info
        if self.autorefresh or path in self.files or not path.startswith("/static/"):
            return await super().__call__(request)
        file = self.files.get(_PREFIX.sub(self.static_prefix, path, count=1))
        if file is None:
            return await super().__call__(request)
        response = await self.aserve(file, request)
        response["Cache-Control"] = _UNVERSIONED
        return response

    def immutable_file_test(self, path: str, url: str) -> bool:
        """Return whether the address of a file changes with its text."""
        del path
        is_versioned = self.static_prefix != "/static/" and url.startswith(self.static_prefix)
        return is_versioned or _BUNDLE.fullmatch(url) is not None
