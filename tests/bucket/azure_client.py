"""A small client of Azure Blob Storage, with a shared key.

usage: azure_client.py URL ACCOUNT KEY [BLOB[?QUERY] [NAME=VALUE...] | --list | --listing]

Without arguments it creates the container. BLOB creates an empty blob; NAME=VALUE is metadata, or a
header if the name begins with x-ms-. With a query, it sends that request instead. --list prints the
names of all blobs, --listing the store's whole answer.
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
    """Sends a request without a body, and returns the answer."""
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
    case ["--list" | "--listing" as form]:
        listing = ask("GET", f"{url}?comp=list&restype=container").decode()
        names = "\n".join(re.findall("<Name>(.*?)</Name>", listing))
        print(names if form == "--list" else listing)
    case [blob, *pairs]:
        named = dict(pair.split("=") for pair in pairs)
        fields = {} if "?" in blob else {"x-ms-blob-type": "BlockBlob"}
        for name, value in named.items():
            fields[name if name.startswith("x-ms-") else f"x-ms-meta-{name}"] = value
        ask("PUT", f"{url}/{blob}", **fields)
