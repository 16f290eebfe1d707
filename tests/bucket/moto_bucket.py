"""Fills a bucket of moto, and changes it behind the mount.

usage: moto_bucket.py ENDPOINT seed | put KEY BYTE SIZE | delete KEY
"""

import hashlib
import random
import sys

import boto3

BUCKET = "bench"


def seed(store):
    """Puts the same objects each time; prints checksum and path of each that a mount shows."""
    store.create_bucket(Bucket=BUCKET)
    source = random.Random(1)
    shown = {
        "big": source.randbytes(5_000_000),
        "deep/er/file": b"deep",
        "empty": b"",
        "odd/ü ñ+%&?#[]'": b"odd",
        "a/b": b"below",
        "records": source.randbytes(131_072 * 3),
    }
    shown.update({f"many/{number:05}": b"0123456789" for number in range(2500)})
    hidden = {"a": b"hidden by a directory", "x//y": b"", "d/../e": b"", " lead": b"", "trail ": b""}
    for key, body in {**shown, **hidden, "marker/": b""}.items():
        store.put_object(Bucket=BUCKET, Key=key, Body=body)
    for key, body in shown.items():
        if not key.startswith("many/"):
            print(f"{hashlib.sha256(body).hexdigest()}  ./{key}")


def main():
    endpoint, command, *rest = sys.argv[1:]
    store = boto3.client("s3", endpoint_url=endpoint)
    match command, rest:
        case "seed", []:
            seed(store)
        case "put", [key, byte, size]:
            store.put_object(Bucket=BUCKET, Key=key, Body=byte.encode() * int(size))
        case "delete", [key]:
            store.delete_object(Bucket=BUCKET, Key=key)
        case _:
            sys.exit(__doc__)


main()
