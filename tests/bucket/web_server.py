"""A web server with more or fewer features.

usage: web_server.py PORT DIRECTORY KIND

KIND is one of:
- webdav: PROPFIND, ranges, strong ETags
- html: an index, also with links to other places; ranges, strong ETags, conditions
- weak: as html, with weak ETags and times
- nothing: as html, with neither ETags nor times
- whole: as html, with times, without ETags and ranges
"""

import email.utils
import html
import http.server
import os
import sys
import urllib.parse
from xml.sax.saxutils import escape

port, root, kind = int(sys.argv[1]), sys.argv[2], sys.argv[3]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def path_of(self):
        path = urllib.parse.unquote(urllib.parse.urlparse(self.path).path)
        return root + path if ".." not in path.split("/") else root + "/none"

    def tags(self, path):
        state = os.stat(path)
        strong = f'"{state.st_ino}-{state.st_mtime_ns}-{state.st_size}"'
        time = email.utils.formatdate(int(state.st_mtime), usegmt=True)
        match kind:
            case "webdav" | "html":
                return {"ETag": strong, "Last-Modified": time}
            case "weak":
                return {"ETag": f'W/"{int(state.st_mtime)}"', "Last-Modified": time}
            case "whole":
                return {"Last-Modified": time}
        return {}

    def answer(self, status, body=b"", headers=None, size=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if size is None else size))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = self.path_of()
        if os.path.isdir(path):
            if not path.endswith("/"):
                return self.answer(301, headers={"Location": self.path + "/"})
            return self.answer(200, self.index(path), {"Content-Type": "text/html"})
        if not os.path.isfile(path):
            return self.answer(404)
        body, tags = open(path, "rb").read(), self.tags(path)
        condition = self.headers.get("If-Match")
        if condition and "ETag" in tags and condition != tags["ETag"]:
            return self.answer(412)
        byte_range = self.headers.get("Range")
        if not byte_range or kind == "whole":
            return self.answer(200, body, tags)
        first, last = byte_range.removeprefix("bytes=").split("-")
        first, last = int(first), min(int(last), len(body) - 1)
        if first >= len(body):
            return self.answer(416)
        tags["Content-Range"] = f"bytes {first}-{last}/{len(body)}"
        return self.answer(206, body[first : last + 1], tags)

    def index(self, path):
        names = [name + "/" * os.path.isdir(path + name) for name in sorted(os.listdir(path))]
        links = [urllib.parse.quote(name) for name in names]
        links += ["../", "/", "?C=M", "http://127.0.0.1:1/passwd", "..%2fpasswd", "/etc/passwd", "none"]
        rows = (f'<li><a href="{html.escape(link)}">x</a>' for link in links)
        return f"<html><ul>{''.join(rows)}</ul>".encode()

    def do_PROPFIND(self):
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path_of()
        if kind != "webdav":
            return self.answer(501)
        if not os.path.isdir(path):
            return self.answer(404)
        base = self.path.rstrip("/") + "/"
        parts = [self.response(base, path)]
        for name in os.listdir(path):
            slash = "/" * os.path.isdir(path + "/" + name)
            parts.append(self.response(base + urllib.parse.quote(name) + slash, path + "/" + name))
        body = f'<?xml version="1.0"?><D:multistatus xmlns:D="DAV:">{"".join(parts)}</D:multistatus>'
        self.answer(207, body.encode(), {"Content-Type": "application/xml"})

    def response(self, href, path):
        if os.path.isdir(path):
            properties = "<D:resourcetype><D:collection/></D:resourcetype>"
        else:
            tags = self.tags(path)
            properties = (
                f"<D:getcontentlength>{os.path.getsize(path)}</D:getcontentlength>"
                f"<D:getetag>{escape(tags['ETag'])}</D:getetag>"
                f"<D:getlastmodified>{tags['Last-Modified']}</D:getlastmodified>"
            )
        return (
            f"<D:response><D:href>{escape(href)}</D:href><D:propstat><D:prop>{properties}</D:prop>"
            "<D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>"
        )

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
