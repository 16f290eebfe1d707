"""Another client of Azure Blob Storage, signed with a shared key: makes a container, or a blob in it
of nothing with something beside it, and tells which blobs there are.

usage: container.py URL ACCOUNT KEY [BLOB [NAME=VALUE...] | --list]
"""

import base64
import email.utils
import hashlib
import hmac
import re
import sys
import urllib.parse
import urllib.request

url, account, key, *rest = sys.argv[1:]


def ask(method, address, **headers):
    """The answer to a request without a body."""
    headers |= {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
    parts = urllib.parse.urlparse(address)
    lines = [method, "", "", "", "", "", "", "", "", "", "", ""]
    lines += sorted(f"{name.lower()}:{value}" for name, value in headers.items())
    lines.append(f"/{account}{parts.path}")
    lines += [f"{name}:{value}" for name, value in sorted(urllib.parse.parse_qsl(parts.query))]
    digest = hmac.new(base64.b64decode(key), "\n".join(lines).encode(), hashlib.sha256).digest()
    headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(digest).decode()}"
    headers["Content-Length"] = "0"
    request = urllib.request.Request(address, method=method, headers=headers)
    return urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).read()


match rest:
    case []:
        ask("PUT", f"{url}?restype=container")
    case ["--list"]:
        listing = ask("GET", f"{url}?comp=list&restype=container").decode()
        print("\n".join(re.findall("<Name>(.*?)</Name>", listing)))
    case [blob, *beside]:
        named = dict(pair.split("=") for pair in beside)
        named = {f"x-ms-meta-{name}": value for name, value in named.items()}
        ask("PUT", f"{url}/{blob}", **{"x-ms-blob-type": "BlockBlob"}, **named)
