"""Files in a bucket of S3 or of a server with the same API, in place of DATA_DIR/content.

The bucket is private and its addresses stay in the server: readers get the bytes through the
server, which checks their rights for each request (docs/adr/0065). Failures are OSErrors, as those
of a disk are. Everything here is synchronous.
"""

from __future__ import annotations

import errno
import io
import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings
from django.core.files.base import File
from storages.backends.s3 import S3Storage

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger(__name__)

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 30
ATTEMPTS: Final = 3
_ABSENT: Final = frozenset({"404", "NoSuchKey"})


class BucketError(OSError):
    """The bucket refused a request, or did not answer."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EIO, reason)


class BucketStorage(S3Storage):
    """Django's storage on the bucket of the settings UAMP_S3_…; keys are the names of files."""

    def get_default_settings(self) -> dict[str, Any]:
        """Return the options of a private bucket, with time-outs for every request."""
        options: dict[str, Any] = super().get_default_settings()
        return options | {
            "bucket_name": settings.UAMP_S3_BUCKET,
            "endpoint_url": settings.UAMP_S3_ENDPOINT or None,
            "region_name": settings.UAMP_S3_REGION or None,
            # Without a key, boto3 looks where AWS puts those of the machine.
            "access_key": settings.UAMP_S3_KEY_ID or None,
            "secret_key": settings.UAMP_S3_SECRET_KEY or None,
            "default_acl": None,
            "file_overwrite": False,
            "client_config": Config(
                connect_timeout=CONNECT_SECONDS,
                read_timeout=READ_SECONDS,
                retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
                # Other servers than Amazon's have one host for all buckets.
                s3={"addressing_style": "path" if settings.UAMP_S3_ENDPOINT else "auto"},
            ),
        }

    @property
    def bucket(self) -> Any:
        """Return the bucket as this thread's connection has it."""
        return self.connection.Bucket(self.bucket_name)

    def url(self, name: str, *_: Any, **__: Any) -> str:
        """Give out no address of the bucket."""
        raise NotImplementedError(f"{name} is read through the server alone.")

    def delete(self, name: str) -> None:
        """Delete an object. A failure is logged, because what it belonged to is already deleted."""
        try:
            with _failures():
                super().delete(name)
        except BucketError as error:
            logger.error("the object %s was not deleted from the bucket: %s", name, error)  # noqa: TRY400 the trace says no more

    def exists(self, name: str) -> bool:
        """Return whether there is such an object."""
        with _failures():
            return bool(super().exists(name))

    def names(self) -> Iterator[str]:
        """Yield the name of each object."""
        with _failures():
            for entry in self.bucket.objects.all():
                yield entry.key

    def probe(self) -> None:
        """Raise BucketError unless the bucket is there for us."""
        with _failures():
            self.connection.meta.client.head_bucket(Bucket=self.bucket_name)

    def _open(self, name: str, mode: str = "rb") -> File[bytes]:
        if mode != "rb":
            raise ValueError("Objects are written whole.")
        reader: Any = ObjectReader(self, self._normalize_name(name))
        return File(reader, name)

    def _save(self, name: str, content: Any) -> str:
        with _failures():
            return str(super()._save(name, content))

    def _normalize_name(self, name: str) -> str:
        return str(super()._normalize_name(name))


class ObjectReader(io.RawIOBase):
    """An object that is read from where the reader is, without a copy of the rest."""

    def __init__(self, storage: BucketStorage, key: str) -> None:
        self._storage = storage
        self._key = key
        with _failures(key):
            self._object = storage.bucket.Object(key)
            self._size = int(self._object.content_length)
        self._at = 0
        self._body: Any = None

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move; the next read requests the object from there."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence]
        if start + offset != self._at:
            self._leave()
            self._at = max(0, start + offset)
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes."""
        if self._at >= self._size:
            return 0
        with _failures(self._key):
            if self._body is None:
                self._body = self._object.get(Range=f"bytes={self._at}-")["Body"]
            data = self._body.read(len(buffer))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        """End the request."""
        self._leave()
        super().close()

    def _leave(self) -> None:
        if self._body is not None:
            self._body.close()
            self._body = None


@contextmanager
def _failures(key: str = "") -> Iterator[None]:
    """Raise FileNotFoundError for an absent object, and BucketError for any other failure."""
    try:
        yield
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if key and code in _ABSENT:
            raise FileNotFoundError(key) from error
        raise BucketError(f"the bucket answered {code}") from error
    except BotoCoreError as error:
        raise BucketError(f"the bucket did not answer: {type(error).__name__}") from error
