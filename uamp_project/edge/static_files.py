"""Static files: cached for good below their digest, and found at every address that had them."""

import asyncio
import re
from typing import TYPE_CHECKING, Final

from servestatic.middleware import ServeStaticMiddleware
from servestatic.responders import MissingFileError, StaticFile

from uamp_project.edge.bundle_copies import BUNDLE, copies_folder

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

_PREFIX: Final = re.compile(r"/static/(?:[0-9a-f]{12}/)?")
_BUNDLE: Final = re.compile(rf"{_PREFIX.pattern}dist/({BUNDLE.pattern})", re.ASCII)
_UNVERSIONED: Final = "max-age=60, public"


class StaticFilesMiddleware(ServeStaticMiddleware):
    """Serves static files below STATIC_URL, and the same files without or with another digest.

    A page of another release loads its modules here, bundles of that release included, and programs
    import the client from `/static/uamp/`.
    """

    async def __call__(self, request: "HttpRequest") -> "HttpResponseBase":
        """Answer with the file, or pass the request on."""
        path = request.path_info
        if self.autorefresh or path in self.files or not path.startswith("/static/"):
            return await super().__call__(request)
        bundle = _BUNDLE.fullmatch(path)
        file = self.files.get(_PREFIX.sub(self.static_prefix, path, count=1))
        if file is None and bundle is not None:
            file = await asyncio.to_thread(self._copy_of, bundle[1], path)
        if file is None:
            return await super().__call__(request)
        response = await self.aserve(file, request)
        if bundle is None:
            response["Cache-Control"] = _UNVERSIONED
        return response

    def _copy_of(self, name: str, url: str) -> StaticFile | None:
        """Return a bundle of another release, or None."""
        try:
            return self.get_static_file(str(copies_folder() / name), url)
        except MissingFileError:
            return None

    def immutable_file_test(self, path: str, url: str) -> bool:
        """Return whether the address of a file changes with its text."""
        del path
        is_versioned = self.static_prefix != "/static/" and url.startswith(self.static_prefix)
        return is_versioned or _BUNDLE.fullmatch(url) is not None
