"""A small Hub over HTTP: what huggingface_hub and datasets ask of the real one to create, upload, tag and download.

Repositories live in memory. Bytes that a client sends before it commits (LFS) are kept, but belong to nothing yet.
"""

import base64
import hashlib
import json
import re
import socket
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import yaml
from double_store import LARGE, Repository, entry, oid_of

TOKEN = "hf_" + "t" * 34  # the only one that the server knows


class Hub(ThreadingHTTPServer):
    """A Hub on a free port of 127.0.0.1.

    Args:
        fault: Called with method and path of each request; a true value cuts the connection.
    """

    daemon_threads, request_queue_size = True, 64

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories, self.stored, self.requests = {}, {}, Counter()
        self.fault = lambda method, path: None

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self):
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *exception):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """A client that has gone is no error of the server."""


REPO = r"/(?P<kind>models|datasets)/(?P<repo>[^/]+/[^/]+)"
FILE = r"/(?:(?P<kind>datasets)/)?(?P<repo>[^/]+/[^/]+)"
ROUTES = [
    ("POST", r"/api/repos/create", "create"),
    ("POST", r"/api/validate-yaml", "validate"),
    ("POST", rf"/api{REPO}/preupload/(?P<revision>[^/]+)", "preupload"),
    ("POST", rf"/api{REPO}/commit/(?P<revision>[^/]+)", "commit"),
    ("POST", rf"/api{REPO}/tag/(?P<revision>[^/]+)", "tag"),
    ("POST", rf"/api{REPO}/paths-info/(?P<revision>[^/]+)", "paths_info"),
    ("GET", rf"/api{REPO}/refs", "refs"),
    ("GET", rf"/api{REPO}/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?", "tree"),
    ("GET", r"/api/datasets/(?P<repo>[^/]+/[^/]+)/leaderboard", "leaderboard"),
    ("GET", rf"/api{REPO}(?:/revision/(?P<revision>[^/]+))?", "info"),
    ("POST", rf"{FILE}\.git/info/lfs/objects/batch", "batch"),
    ("PUT", r"/storage/(?P<oid>[0-9a-f]{64})", "store"),
    ("GET", r"/storage/(?P<oid>[0-9a-f]{64})", "storage"),
    ("GET", rf"{FILE}/resolve/(?P<revision>[^/]+)/(?P<path>.+)", "resolve"),
]


class RefusedError(Exception):
    """An answer that is no success: status and the Hub's error code."""


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle_request(self):
        path = urlsplit(self.path).path
        method = "GET" if self.command == "HEAD" else self.command
        if self.server.fault(self.command, path):
            self.cut()
            return
        length = int(self.headers.get("Content-Length") or 0)
        self.body = self.rfile.read(length) if length or "chunked" not in self.headers.get("Transfer-Encoding", "") \
            else self.chunks()  # fmt: skip
        for wanted, pattern, name in ROUTES:
            if wanted == method and (found := re.fullmatch(pattern, path)):
                self.server.requests[name] += 1
                try:
                    getattr(self, name)(**found.groupdict())
                except RefusedError as refused:
                    status, code = refused.args
                    self.answer(status, json.dumps({"error": code}).encode(), {"X-Error-Code": code})
                return
        self.answer(404, b"{}", {})

    do_GET = do_HEAD = do_POST = do_PUT = handle_request  # noqa: N815

    def chunks(self):
        parts = []
        while size := int(self.rfile.readline(), 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def cut(self):
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def answer(self, status, data, headers):
        self.send_response(status)
        for name, value in {"Content-Length": str(len(data)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def json(self, value, status=200):
        self.answer(status, json.dumps(value).encode(), {"Content-Type": "application/json"})

    # --- who may do what

    def may_write(self):
        given = self.headers.get("Authorization")
        if given != f"Bearer {TOKEN}":
            raise RefusedError(403 if given else 401, "Forbidden")

    def repository(self, kind, repo):
        found = self.server.repositories.get((kind or "models", repo))
        if found is None or (found.private and self.headers.get("Authorization") != f"Bearer {TOKEN}"):
            raise RefusedError(401, "RepoNotFound")
        return found

    def at(self, kind, repo, revision):
        """Commit and files of a revision."""
        found = self.repository(kind, repo)
        oid = found.resolve(revision or "main")
        if oid is None:
            raise RefusedError(404, "RevisionNotFound")
        return oid, found.commits[oid]

    # --- what is asked

    def create(self):
        self.may_write()
        asked = json.loads(self.body)
        key = (f"{asked.get('type') or 'model'}s", f"{asked['organization']}/{asked['name']}")
        if key in self.server.repositories:
            raise RefusedError(409, "Exists")
        private = asked.get("visibility") == "private" or bool(asked.get("private"))
        self.server.repositories[key] = Repository(private)
        self.json({"url": f"{self.server.url}/{key[1]}"})

    def validate(self):
        front = json.loads(self.body)["content"].split("---\n")[1]
        try:
            valid = isinstance(yaml.safe_load(front), dict)
        except yaml.YAMLError:
            valid = False
        self.json({"errors": [] if valid else [{"message": "no YAML"}], "warnings": []}, 200 if valid else 400)

    def preupload(self, kind, repo, revision):
        self.may_write()
        _, files = self.at(kind, repo, revision)
        asked = [file["path"] for file in json.loads(self.body)["files"]]
        modes = [
            {"path": path, "uploadMode": "lfs" if LARGE.fullmatch(path) else "regular", "shouldIgnore": False}
            | ({"oid": oid_of(path, files[path])} if path in files else {})
            for path in asked
        ]
        self.json({"files": modes})

    def batch(self, kind, repo):
        self.may_write()
        self.repository(kind, repo)
        objects = [
            {"oid": one["oid"], "size": one["size"]}
            | ({} if one["oid"] in self.server.stored
               else {"actions": {"upload": {"href": f"{self.server.url}/storage/{one['oid']}"}}})
            for one in json.loads(self.body)["objects"]
        ]  # fmt: skip
        self.json({"transfer": "basic", "objects": objects})

    def store(self, oid):
        if hashlib.sha256(self.body).hexdigest() != oid:
            raise RefusedError(400, "WrongChecksum")
        self.server.stored[oid] = self.body
        self.answer(200, b"", {})

    def commit(self, kind, repo, revision):
        self.may_write()
        found = self.repository(kind, repo)
        files, message = dict(found.files), ""
        for line in map(json.loads, self.body.splitlines()):
            value = line["value"]
            if line["key"] == "header":
                message = value["summary"]
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.server.stored:
                    raise RefusedError(400, "LfsFileMissing")
                files[value["path"]] = self.server.stored[value["oid"]]
            else:
                assert line["key"] == "deletedFile", line
                del files[value["path"]]
        oid = found.commit(files, message)
        self.json({"success": True, "commitOid": oid, "commitUrl": f"{self.server.url}/{repo}/commit/{oid}"})

    def tag(self, kind, repo, revision):
        self.may_write()
        tags, name = self.repository(kind, repo).tags, json.loads(self.body)["tag"]
        if name in tags:
            raise RefusedError(409, "Exists")
        tags[name], _ = self.at(kind, repo, revision)
        self.json({})

    def refs(self, kind, repo):
        found = self.repository(kind, repo)
        tags = [{"name": n, "ref": f"refs/tags/{n}", "targetCommit": oid} for n, oid in found.tags.items()]
        main = {"name": "main", "ref": "refs/heads/main", "targetCommit": found.head}
        self.json({"branches": [main], "tags": tags, "converts": []})

    def info(self, kind, repo, revision=None):
        oid, files = self.at(kind, repo, revision)
        found = self.repository(kind, repo)
        siblings = [{"rfilename": path} for path in files]
        self.json({"id": repo, "sha": oid, "private": found.private, "siblings": siblings, "tags": [],
                   "downloads": 0, "likes": 0, "evalResults": self.results_in(files)})  # fmt: skip

    @staticmethod
    def results_in(files):
        """The values of ``.eval_results``, each with its file."""
        return [
            {"filename": name, "data": one}
            for name, data in sorted(files.items())
            if re.fullmatch(r"\.eval_results/[^/]+\.yaml", name)
            for one in yaml.safe_load(data)
        ]

    def leaderboard(self, repo):
        """The values of all models for the tasks that ``eval.yaml`` names, best first."""
        _, files = self.at("datasets", repo, None)
        if "eval.yaml" not in files:
            raise RefusedError(404, "NotABenchmark")
        tasks = {task["id"] for task in yaml.safe_load(files["eval.yaml"])["tasks"]}
        models = [name for kind, name in self.server.repositories if kind == "models"]
        values = [
            (one["data"], one["filename"], model)
            for model in models
            for one in self.results_in(self.at("models", model, None)[1])
            if one["data"]["dataset"]["id"] == repo and one["data"]["dataset"]["task_id"] in tasks
        ]
        values.sort(key=lambda one: -one[0]["value"])
        self.json([
            {"rank": rank, "modelId": model, "value": one["value"], "filename": filename, "verified": False,
             "source": one.get("source"), "notes": one.get("notes"), "author": {"type": "user", "name": "acme"}}
            for rank, (one, filename, model) in enumerate(values, 1)
        ])  # fmt: skip

    def tree(self, kind, repo, revision, path=None):
        _, files = self.at(kind, repo, revision)
        inside = {name: data for name, data in files.items() if path is None or name.startswith(f"{unquote(path)}/")}
        deep = parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() in ("true", "1")
        depth = path.count("/") + 1 if path else 0
        entries = [entry(name, data) for name, data in inside.items() if deep or name.count("/") == depth]
        folders = {"/".join(name.split("/")[:cut]) for name in inside for cut in range(depth + 1, name.count("/") + 1)}
        shown = sorted(folder for folder in folders if deep or folder.count("/") == depth)
        if path is not None and not inside:
            raise RefusedError(404, "EntryNotFound")
        self.json(entries + [{"type": "directory", "path": folder, "oid": "0" * 40, "size": 0} for folder in shown])

    def paths_info(self, kind, repo, revision):
        _, files = self.at(kind, repo, revision)
        asked = parse_qs(self.body.decode()).get("paths") or json.loads(self.body)["paths"]
        folders = [p for p in asked if any(name.startswith(f"{p}/") for name in files)]
        found = [entry(path, files[path]) for path in asked if path in files]
        self.json(found + [{"type": "directory", "path": folder, "oid": "0" * 40, "size": 0} for folder in folders])

    def resolve(self, kind, repo, revision, path):
        oid, files = self.at(kind, repo, revision)
        path = unquote(path)
        if path not in files:
            raise RefusedError(404, "EntryNotFound")
        data, headers = files[path], {"X-Repo-Commit": oid}
        if not LARGE.fullmatch(path):
            self.answer(200, data, headers | {"ETag": f'"{oid_of(path, data)}"'})
            return
        sha = oid_of(path, data)
        where = {"Location": f"http://localhost:{self.server.server_port}/storage/{sha}"}  # as there, another host
        self.answer(302, b"", headers | where | {"X-Linked-Etag": f'"{sha}"', "X-Linked-Size": str(len(data))})

    def storage(self, oid):
        data, asked = self.server.stored[oid], self.headers.get("Range")
        if not asked:
            self.answer(200, data, {"ETag": f'"{oid}"'})
            return
        start, _, end = asked.removeprefix("bytes=").partition("-")
        part = data[int(start) : int(end) + 1 if end else None]
        place = f"bytes {start}-{int(start) + len(part) - 1}/{len(data)}"
        self.answer(206, part, {"Content-Range": place, "ETag": f'"{oid}"'})

    def log_message(self, *arguments):
        """Tests speak for themselves."""
