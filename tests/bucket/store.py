"""Another client of the store: what it fills a bucket with, and what it changes behind the mount.

usage: store.py ENDPOINT seed | put KEY BYTE SIZE | delete KEY | sum KEY
"""

import hashlib
import random
import sys

import boto3

BUCKET = "bench"


def seed(store):
    """The same keys and bytes each time; prints the sum and the path of each that can be shown."""
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
        case "sum", [key]:
            body = store.get_object(Bucket=BUCKET, Key=key)["Body"].read()
            print(hashlib.sha256(body).hexdigest())
        case _:
            sys.exit(__doc__)


main()
