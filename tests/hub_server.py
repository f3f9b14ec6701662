"""A Hub on loopback that keeps dataset repos in memory: files by revision, commits, pull requests.

    with HubServer({"org/results": {}}) as hub:
        api = HfApi(endpoint=hub.url, token="t")
        hub.files["org/results"]["refs/pr/1"]     # path -> content, once a pull request was opened

Only what huggingface_hub asks for create_commit, file_exists, list_repo_tree, get_repo_discussions, snapshot_download
and create_repo is here, in the Hub's own form. `down` makes every request fail; `requests` is what came, in order.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

WHEN = "2025-06-30T12:00:00.000Z"


class HubServer:
    """A running server; `files[repo][revision]` maps paths to contents, `pulls[repo]` lists the pull requests.

    Files whose name ends in one of `lfs` are kept as Git LFS does. A request with `refused` in its address gets a 400.
    """

    def __init__(self, repos: Mapping[str, Mapping[str, bytes]], lfs: tuple[str, ...] = ()) -> None:
        self.files: dict[str, dict[str, dict[str, bytes]]] = {r: {"main": dict(f)} for r, f in repos.items()}
        self.pulls: dict[str, list[dict[str, Any]]] = {repo: [] for repo in repos}
        self.requests: list[str] = []
        self.down = False
        self.lfs = lfs
        self.large: dict[str, bytes] = {}  # uploaded, by sha256
        self.refused: str | None = None
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                hub._get(self)

            def do_HEAD(self) -> None:
                hub._get(self)

            def do_POST(self) -> None:
                hub._post(self)

            def do_PUT(self) -> None:
                hub._put(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> HubServer:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()

    # -- requests --

    def _get(self, ask: BaseHTTPRequestHandler) -> None:
        url = urlsplit(ask.path)
        self.requests.append(f"{ask.command} {ask.path}")
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        if self.down:
            return _reply(ask, 503, {"error": "down"})
        if parts[:2] == ["api", "datasets"]:
            repo, what = "/".join(parts[2:4]), parts[4:]
            if repo not in self.files:
                return _missing(ask, "RepoNotFound")
            if what[:1] == ["discussions"]:
                wanted = parse_qs(url.query).get("status", ["all"])[0]
                found = [p for p in self.pulls[repo] if wanted in ("all", p["status"])]
                return _reply(ask, 200, {"discussions": found, "count": len(found), "start": 0})
            revision = what[1] if len(what) > 1 else "main"
            files = self._files(repo, revision)
            if files is None:
                return _missing(ask, "RevisionNotFound")
            if what[:1] == ["tree"]:
                return _reply(ask, 200, [self._entry(path, content) for path, content in sorted(files.items())])
            siblings = [{"rfilename": path} for path in sorted(files)]
            return _reply(
                ask, 200, {"id": repo, "sha": _oid(files), "siblings": siblings, "private": False, "tags": []}
            )
        if parts[:1] == ["datasets"] and parts[3:4] == ["resolve"]:
            repo, revision, path = "/".join(parts[1:3]), parts[4], "/".join(parts[5:])
            files = self._files(repo, revision)
            if repo not in self.files or files is None:
                return _missing(ask, "RepoNotFound" if repo not in self.files else "RevisionNotFound")
            if path not in files:
                return _missing(ask, "EntryNotFound")
            return _send(ask, files[path], {"ETag": f'"{_blob(files[path])}"', "X-Repo-Commit": _oid(files)})
        return _missing(ask, "RepoNotFound")

    def _post(self, ask: BaseHTTPRequestHandler) -> None:
        url = urlsplit(ask.path)
        self.requests.append(f"{ask.command} {ask.path}")
        body = ask.rfile.read(int(ask.headers.get("Content-Length", 0)))
        parts = [unquote(part) for part in url.path.strip("/").split("/")]
        if self.down:
            return _reply(ask, 503, {"error": "down"})
        if self.refused and self.refused in ask.path:
            return _reply(ask, 400, {"error": "refused"})
        if parts[-4:] == ["info", "lfs", "objects", "batch"]:
            objects = [self._upload(one) for one in json.loads(body)["objects"]]
            return _reply(ask, 200, {"transfer": "basic", "objects": objects})
        if parts == ["api", "repos", "create"]:
            asked = json.loads(body)
            repo = f"{asked.get('organization') or 'me'}/{asked['name']}"
            if repo in self.files:
                return _reply(ask, 409, {"error": "exists", "url": f"{self.url}/datasets/{repo}"})
            self.files[repo], self.pulls[repo] = {"main": {}}, []
            return _reply(ask, 200, {"url": f"{self.url}/datasets/{repo}", "id": repo, "name": repo})
        if parts == ["api", "validate-yaml"]:
            return _reply(ask, 200, {"errors": [], "warnings": []})
        repo, what = "/".join(parts[2:4]), parts[4:]
        if parts[:2] != ["api", "datasets"] or repo not in self.files:
            return _missing(ask, "RepoNotFound")
        if what[0] == "preupload":
            listed = [
                {"path": one["path"], "uploadMode": self._mode(one["path"]), "shouldIgnore": False}
                for one in json.loads(body)["files"]
            ]
            return _reply(ask, 200, {"files": listed})
        if what[0] == "commit":
            return self._commit(ask, repo, what[1], body, "create_pr" in parse_qs(url.query))
        return _missing(ask, "EntryNotFound")

    def _put(self, ask: BaseHTTPRequestHandler) -> None:
        self.requests.append(f"{ask.command} {ask.path}")
        content = ask.rfile.read(int(ask.headers.get("Content-Length", 0)))
        if self.refused and self.refused in ask.path:
            return _reply(ask, 400, {"error": "refused"})
        self.large[hashlib.sha256(content).hexdigest()] = content
        return _reply(ask, 200, {})

    def _mode(self, path: str) -> str:
        return "lfs" if path.endswith(self.lfs) else "regular"

    def _entry(self, path: str, content: bytes) -> dict[str, Any]:
        entry = {"type": "file", "path": path, "size": len(content), "oid": _blob(content)}
        if self._mode(path) == "lfs":
            entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
        return entry

    def _upload(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """What the LFS batch says of one file: where to put it, or that it is there."""
        known = {"oid": asked["oid"], "size": asked["size"]}
        if asked["oid"] in self.large:
            return known
        return {**known, "actions": {"upload": {"href": f"{self.url}/lfs/{asked['oid']}"}}}

    def _commit(self, ask: BaseHTTPRequestHandler, repo: str, revision: str, body: bytes, pull: bool) -> None:
        files = dict(self.files[repo][revision])
        title = ""
        for line in body.splitlines():
            step = json.loads(line)
            value = step["value"]
            if step["key"] == "header":
                title = value["summary"]
                if value.get("parentCommit") not in (None, _oid(files)):
                    return _reply(ask, 412, {"error": "the parent commit is not the newest"})
            elif step["key"] == "lfsFile":
                files[value["path"]] = self.large[value["oid"]]
            elif step["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif step["key"] == "deletedFile":
                files.pop(value["path"])
            elif step["key"] == "deletedFolder":
                files = {path: c for path, c in files.items() if not path.startswith(value["path"])}
        address = None
        if pull:
            number = len(self.pulls[repo]) + 1
            revision = f"refs/pr/{number}"
            address = f"{self.url}/datasets/{repo}/discussions/{number}"
            self.pulls[repo].append(
                {
                    "title": title,
                    "num": number,
                    "author": {"name": "me"},
                    "createdAt": WHEN,
                    "status": "open",
                    "repo": {"name": repo, "type": "dataset"},
                    "isPullRequest": True,
                }
            )
        self.files[repo][revision] = files
        commit = f"{self.url}/datasets/{repo}/commit/{_oid(files)}"
        _reply(ask, 200, {"commitUrl": commit, "commitOid": _oid(files), "pullRequestUrl": address})

    def _files(self, repo: str, revision: str) -> dict[str, bytes] | None:
        """The files of a branch, or of a commit that is the newest of a branch."""
        branches = self.files.get(repo, {})
        return branches.get(revision, next((f for f in branches.values() if _oid(f) == revision), None))


def _oid(files: Mapping[str, bytes]) -> str:
    return hashlib.sha1(repr(sorted((p, _blob(c)) for p, c in files.items())).encode()).hexdigest()


def _blob(content: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


def _reply(ask: BaseHTTPRequestHandler, status: int, data: Any) -> None:
    _send(ask, json.dumps(data).encode(), {"Content-Type": "application/json"}, status)


def _missing(ask: BaseHTTPRequestHandler, code: str) -> None:
    _send(ask, b"", {"X-Error-Code": code, "X-Error-Message": code}, 404)


def _send(ask: BaseHTTPRequestHandler, content: bytes, headers: Mapping[str, str], status: int = 200) -> None:
    ask.send_response(status)
    for name, value in headers.items():
        ask.send_header(name, value)
    ask.send_header("Content-Length", str(len(content)))
    ask.end_headers()
    if ask.command != "HEAD":
        ask.wfile.write(content)
