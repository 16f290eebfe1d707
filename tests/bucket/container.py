"""Another client of Azure Blob Storage, signed with a shared key: makes a container, or a blob in it
of nothing with something beside it, and tells which blobs there are. Names that begin with x-ms- are
fields of the request; with a query behind the blob it is another request than to make it. With
--listing all is told that the store tells of them.

usage: container.py URL ACCOUNT KEY [BLOB[?QUERY] [NAME=VALUE...] | --list | --listing]
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
    case ["--list" | "--listing" as wanted]:
        listing = ask("GET", f"{url}?comp=list&restype=container").decode()
        names = "\n".join(re.findall("<Name>(.*?)</Name>", listing))
        print(names if wanted == "--list" else listing)
    case [blob, *beside]:
        named = dict(pair.split("=") for pair in beside)
        fields = {} if "?" in blob else {"x-ms-blob-type": "BlockBlob"}
        for name, value in named.items():
            fields[name if name.startswith("x-ms-") else f"x-ms-meta-{name}"] = value
        ask("PUT", f"{url}/{blob}", **fields)
