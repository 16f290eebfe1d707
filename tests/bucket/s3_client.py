"""A small S3 client in plain Python, independent of ogive and of other libraries.

usage: s3_client.py BUCKET get KEY | put KEY | delete KEY | list [PREFIX] | uploads | head KEY

Address and credentials come from the usual AWS variables of the environment. `get` writes to standard
output, `put` reads standard input, `head` prints the metadata.
"""

import datetime
import hashlib
import hmac
import http.client
import os
import re
import sys
import urllib.parse
import xml.etree.ElementTree as tree


class Refused(Exception):
    """An error answer of the store."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body[:300]!r}")
        self.status = status


class Store:
    def __init__(self, bucket, endpoint=None):
        self.bucket = bucket
        address = urllib.parse.urlparse(endpoint or os.environ["AWS_ENDPOINT_URL"])
        self.host = address.netloc
        self.access, self.secret = (
            os.environ[name] for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
        )
        self.region = os.environ.get("AWS_REGION", "us-east-1")

    def ask(self, method, key="", query=None, body=b"", headers=None):
        """Sends a signed request. Returns answer and body; raises `Refused` for an error."""
        path = urllib.parse.quote(f"/{self.bucket}" + (f"/{key}" if key else ""), safe="/~")
        pairs = sorted((query or {}).items())
        query = "&".join(
            f"{urllib.parse.quote(name, safe='~')}={urllib.parse.quote(value, safe='~')}"
            for name, value in pairs
        )
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        digest = hashlib.sha256(body).hexdigest()
        signed = {"host": self.host, "x-amz-content-sha256": digest, "x-amz-date": now}
        signed.update({name.lower(): value for name, value in (headers or {}).items()})
        names = ";".join(sorted(signed))
        lines = "".join(f"{name}:{signed[name].strip()}\n" for name in sorted(signed))
        request = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{digest}"
        scope = f"{now[:8]}/{self.region}/s3/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        secret = f"AWS4{self.secret}".encode()
        for part in (now[:8], self.region, "s3", "aws4_request", text):
            secret = hmac.new(secret, part.encode(), hashlib.sha256).digest()
        signed["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.access}/{scope}, "
            f"SignedHeaders={names}, Signature={secret.hex()}"
        )
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            connection.request(method, path + (f"?{query}" if query else ""), body, signed)
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status >= 300:
            raise Refused(answer.status, content)
        return answer, content

    def get(self, key):
        """Returns the bytes of an object; `None` if it does not exist."""
        try:
            return self.ask("GET", key)[1]
        except Refused as refused:
            if refused.status != 404:
                raise
            return None

    def head(self, key):
        """Returns the metadata of an object, with names without prefix, and all headers."""
        answer, _ = self.ask("HEAD", key)
        prefix = "x-amz-meta-"
        headers = {name.lower(): value for name, value in answer.getheaders()}
        metadata = {name[len(prefix) :]: value for name, value in headers.items() if name.startswith(prefix)}
        return metadata, headers

    def put(self, key, body, headers=None):
        self.ask("PUT", key, body=body, headers=headers)

    def delete(self, key):
        self.ask("DELETE", key)

    def names(self, prefix=""):
        """Returns all keys with a prefix."""
        found, token = [], None
        while True:
            query = {"list-type": "2", "prefix": prefix, "encoding-type": "url"}
            if token:
                query["continuation-token"] = token
            _, body = self.ask("GET", query=query)
            root = tree.fromstring(re.sub(rb' xmlns="[^"]+"', b"", body))
            found += [urllib.parse.unquote(each.text or "") for each in root.iter("Key")]
            token = root.findtext("NextContinuationToken")
            if not token:
                return found

    def uploads(self, prefix=""):
        """Returns the keys of multipart uploads that are neither completed nor aborted."""
        _, body = self.ask("GET", query={"uploads": "", "prefix": prefix})
        root = tree.fromstring(re.sub(rb' xmlns="[^"]+"', b"", body))
        return [each.findtext("Key") for each in root.iter("Upload")]


def main():
    bucket, command, *rest = sys.argv[1:]
    store = Store(bucket)
    match command, rest:
        case "get", [key]:
            body = store.get(key)
            if body is None:
                sys.exit(f"there is no {key}")
            sys.stdout.buffer.write(body)
        case "put", [key]:
            store.put(key, sys.stdin.buffer.read())
        case "delete", [key]:
            store.delete(key)
        case "list", []:
            print("\n".join(store.names()))
        case "list", [prefix]:
            print("\n".join(store.names(prefix)))
        case "uploads", []:
            print("\n".join(store.uploads()))
        case "head", [key]:
            for name, value in sorted(store.head(key)[0].items()):
                print(f"{name}: {value}")
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
