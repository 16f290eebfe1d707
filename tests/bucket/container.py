"""Makes a container in Azure Blob Storage, signed with a shared key.

usage: container.py URL ACCOUNT KEY
"""

import base64
import email.utils
import hashlib
import hmac
import sys
import urllib.parse
import urllib.request

url, account, key = sys.argv[1:]
headers = {"x-ms-date": email.utils.formatdate(usegmt=True), "x-ms-version": "2021-08-06"}
path = urllib.parse.urlparse(url).path
lines = ["PUT", "", "", "", "", "", "", "", "", "", "", ""]
lines += [f"{name}:{headers[name]}" for name in sorted(headers)]
lines += [f"/{account}{path}", "restype:container"]
digest = hmac.new(base64.b64decode(key), "\n".join(lines).encode(), hashlib.sha256).digest()
headers["Authorization"] = f"SharedKey {account}:{base64.b64encode(digest).decode()}"
headers["Content-Length"] = "0"
request = urllib.request.Request(f"{url}?restype=container", method="PUT", headers=headers)
urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request)
