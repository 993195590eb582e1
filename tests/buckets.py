"""An S3 server on this machine, and buckets in it."""

from __future__ import annotations

import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import boto3
from moto.server import ThreadedMotoServer

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY_ID = "AKIAEXAMPLEEXAMPLE00"
SECRET_KEY = "secret-of-the-bucket"


@dataclass(frozen=True)
class Bucket:
    """A bucket, and what may do all in it."""

    name: str
    endpoint: str
    client: Any

    @property
    def environment(self) -> dict[str, str]:
        """The environment of a server that stores its files in this bucket."""
        return {
            "UAMP_S3_BUCKET": self.name,
            "UAMP_S3_ENDPOINT": self.endpoint,
            "UAMP_S3_REGION": "us-east-1",
            "UAMP_S3_KEY_ID": KEY_ID,
            "UAMP_S3_SECRET_KEY": SECRET_KEY,
        }

    def objects(self) -> dict[str, bytes]:
        """Return the bytes of all objects by key."""
        listed = self.client.list_objects_v2(Bucket=self.name).get("Contents", [])
        return {
            entry["Key"]: self.client.get_object(Bucket=self.name, Key=entry["Key"])["Body"].read()
            for entry in listed
        }


@contextmanager
def s3_server() -> Iterator[str]:
    """Serve S3, and give the address."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        host, port = server.get_host_and_port()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def make_bucket(endpoint: str) -> Bucket:
    """Make an empty bucket."""
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=KEY_ID,
        aws_secret_access_key=SECRET_KEY,
    )
    name = f"files-{uuid.uuid4().hex[:12]}"
    client.create_bucket(Bucket=name)
    return Bucket(name=name, endpoint=endpoint, client=client)
