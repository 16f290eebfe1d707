"""Creates names with characters of every class through a mount.

usage: key_names.py MOUNT s3 ENDPOINT BUCKET
       key_names.py MOUNT azure CONTAINER

For the store's own client, each name is the same key. Other names are refused when they are created.
No name leads to another object.
"""

import errno
import itertools
import os
import sys

CHARACTERS = [chr(code) for code in range(1, 0x100) if chr(code) != "/"] + list(
    "\u0300\u0338\u05d0\u061c\u1680\u180e\u2000\u200b\u200d\u200e\u2028\u2029\u202e\u2126\u212b"
    "\u2215\u2f00\u3000\uac00\ud7ff\ue000\uf8ff\ufb01\ufdd0\ufe0f\ufeff\uff0e\uff0f\uff3c\ufff0"
    "\ufffd\ufffe\uffff\U00010000\U0001f600\U0001fffe\U000e0001\U0010ffff"
)
WHOLE = ["...", "a..", "%2e", "%2e%2e", "%2F", "%5C", "%00", "%0A", "e\u0301", "A", "a", "x" * 255]
REFUSALS = {errno.EINVAL, errno.ENAMETOOLONG}


def names(kind):
    # moto cannot serve a key with a newline: its routes are patterns of one line.
    letters = [letter for letter in CHARACTERS if kind != "s3" or letter != "\n"]
    forms = ((f"a{letter}", f"{letter}a") for letter in letters)
    found = dict.fromkeys(itertools.chain(*forms, WHOLE))
    return [name for name in found if name not in (".", "..")]


class S3:
    def __init__(self, endpoint, bucket):
        import boto3

        self.store, self.bucket = boto3.client("s3", endpoint_url=endpoint), bucket

    def keys(self):
        pages = self.store.get_paginator("list_objects_v2").paginate(Bucket=self.bucket)
        return {found["Key"] for page in pages for found in page.get("Contents", [])}

    def get(self, key):
        return self.store.get_object(Bucket=self.bucket, Key=key)["Body"].read()


class Azure:
    def __init__(self, container):
        from azure.storage.blob import BlobServiceClient

        connection = os.environ["AZURE_STORAGE_CONNECTION_STRING"]
        service = BlobServiceClient.from_connection_string(connection, api_version="2021-12-02")
        self.container = service.get_container_client(container)

    def keys(self):
        return {blob.name for blob in self.container.list_blobs()}

    def get(self, key):
        return self.container.download_blob(key).readall()


def refused(act, *arguments):
    """Whether an operation is refused with one of the expected errors."""
    try:
        act(*arguments)
        return False
    except OSError as error:
        if error.errno not in REFUSALS:
            sys.exit(f"{arguments}: {error}")
        return True


def make(path, text):
    """Whether a file was created; an error after its open is too late."""
    try:
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    except OSError as error:
        if error.errno not in REFUSALS:
            sys.exit(f"{path!r}: {error}")
        return False
    try:
        os.write(file, text.encode())
        os.close(file)
    except OSError as error:
        sys.exit(f"{path!r} is refused when it is closed: {error}")
    return True


def main(mount, kind, *rest):
    store = {"s3": S3, "azure": Azure}[kind](*rest)
    below = f"{mount}/names"
    os.mkdir(below)
    os.mkdir(f"{below}-of-nothing")
    make(f"{mount}/plain", "plain")
    tried = names(kind)
    made = [name for name in tried if make(f"{below}/{name}", name)]
    for name in set(tried) - set(made):
        if not refused(os.rename, f"{mount}/plain", f"{below}/{name}"):
            sys.exit(f"{name!r} can be created by renaming a file")
        # Stores strip white space at the end of a key, but a directory's key ends with a slash.
        if name != name.rstrip():
            continue
        if not refused(os.rename, f"{below}-of-nothing", f"{below}/{name}"):
            sys.exit(f"{name!r} can be created by renaming a directory")
        if not refused(os.mkdir, f"{below}/{name}"):
            sys.exit(f"a directory {name!r} can be created")
    keys = {key.removeprefix("names/") for key in store.keys() if key.startswith("names/")} - {""}
    if keys != set(made):
        sys.exit(f"not in the store: {set(made) - keys}; not created: {keys - set(made)}")
    for name in made:
        if store.get(f"names/{name}").decode() != name:
            sys.exit(f"{name!r} has other bytes in the store")
    if set(os.listdir(below)) != set(made):
        sys.exit(f"the listing differs: {set(os.listdir(below)) ^ set(made)}")
    for name in made:
        other = f"{below}/{name[:120]}-r"
        os.rename(f"{below}/{name}", other)
        with open(other, encoding="utf-8") as file:
            if file.read() != name:
                sys.exit(f"{name!r} has other bytes after a rename")
        os.unlink(other)
    left = [key for key in store.keys() if key.startswith("names/") and key != "names/"]
    if left:
        sys.exit(f"left in the store: {left}")
    print(f"{len(made)} names created, {len(tried) - len(made)} refused")


main(*sys.argv[1:])
