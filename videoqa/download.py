"""Public files onto this machine: pinned, checked, whole, by ranges out of large archives."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from videoqa.errors import UserError
from videoqa.files import abandoned, write_json
from videoqa.progress import bar as tqdm

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
CHECKSUMS = "checksums.json"
TRIES = 4
WAIT = 1.0  # seconds before the second try; doubles
TIMEOUT = 60.0  # seconds without a byte


@dataclass(frozen=True, slots=True)
class Source:
    """One public file. `name` is what it is called here; a file inside a zip archive has the archive's address.

    `sha256` is of the content with line ends as in the repository (a Windows checkout has others), None where it is
    not known. A folder that is given instead of the network may hold the files `instead`, which are made from it.
    """

    name: str
    url: str
    sha256: str | None = None
    instead: tuple[str, ...] = ()

    @property
    def in_zip(self) -> bool:
        return self.url.endswith(".zip")


def bring(sources: Sequence[Source], folder: Path, local: Path | None, say: Callable[[str], None]) -> None:
    """Get every source into `folder`, from the folder `local` instead of the network if one is given; what is there
    and right is not fetched again."""
    with _client() as client:
        for source in sources:
            _bring(source, folder, local, client, say)


def _bring(source: Source, folder: Path, local: Path | None, client: httpx.Client, say: Callable[[str], None]) -> None:
    """One source, if it is not there and right."""
    recorded = _read_checksums(folder)
    expected = source.sha256 or recorded.get(source.name)
    if (folder / source.name).exists() and expected and _sha256(folder / source.name) == expected:
        say(f"there     {folder / source.name}")
        return
    if made := _made_from(source, local) if local else []:
        for path in made:
            with _beside(folder / path.name) as part:
                shutil.copyfile(path, part)
            say(f"copied    {folder / path.name} (in place of {source.name})")
        return
    with _beside(folder / source.name) as part:
        origin = _get(source, part, local, client)
        got = _sha256(part)
        if expected and got != expected:
            kept = "" if source.sha256 else f" (of the first one, kept in {folder / CHECKSUMS})"
            raise UserError(f"{source.name} from {origin}: sha256 {expected} is expected{kept}, it has {got}")
    say(f"{'copied' if local else 'fetched':9} {folder / source.name}")
    if not expected and local is None:
        recorded[source.name] = got
        write_json(folder / CHECKSUMS, recorded)
        say(f"          no checksum of it is published; kept for the next time: sha256 {got}")


def _made_from(source: Source, local: Path) -> list[Path]:
    """The files in `local` that are made from the source, where the source itself is not there."""
    if (local / source.name).exists() or (source.in_zip and (local / Path(source.url).name).exists()):
        return []
    made = [local / name for name in source.instead if (local / name).exists()]
    if not made or len(made) < len(source.instead):
        names = [source.name, *([Path(source.url).name] if source.in_zip else [])]
        other = f", nor {' and '.join(source.instead)} that are made from it" if source.instead else ""
        raise FileNotFoundError(f"{local}: no {' or '.join(names)}{other}")
    return made


def _get(source: Source, part: Path, local: Path | None, client: httpx.Client) -> str:
    """Write the source to `part`; where it is from."""
    if local is None:
        _download(client, source, part)
        return source.url
    if (local / source.name).exists():
        shutil.copyfile(local / source.name, part)
        return str(local / source.name)
    archive = local / Path(source.url).name
    with archive.open("rb") as file:
        _extract(file, source.name, part, str(archive))
    return str(archive)


def _client() -> httpx.Client:
    import httpx

    return httpx.Client(follow_redirects=True, timeout=httpx.Timeout(TIMEOUT, connect=15.0))


def _download(client: httpx.Client, source: Source, part: Path) -> None:
    import httpx

    try:
        if source.in_zip:
            _download_member(client, source, part)
        else:
            _tried(_stream, client, source.url, part)
    except httpx.HTTPError as error:
        what = str(error) or type(error).__name__
        raise ConnectionError(
            f"{source.name} cannot be fetched from {source.url}: {what.splitlines()[0]}. Try again later, or get "
            "the files in another way and give their folder with --from"
        ) from error


def _download_member(client: httpx.Client, source: Source, part: Path) -> None:
    """One file of an archive of gigabytes: only its parts are asked for, if the server can do that."""
    remote = _Remote(client, source.url)
    if remote.size is not None:
        _extract(io.BufferedReader(remote, 1 << 20), source.name, part, source.url)
        return
    whole = part.with_name(f"{part.name}.zip")
    _tried(_stream, client, source.url, whole)
    with whole.open("rb") as file:
        _extract(file, source.name, part, source.url)


def _extract(archive: IO[bytes], name: str, part: Path, origin: str) -> None:
    """The one file of that name, in whichever folder of the archive; zip checks its CRC-32."""
    try:
        with zipfile.ZipFile(archive) as members:
            named = [member for member in members.infolist() if Path(member.filename).name == name]
            if len(named) != 1:
                tables = ", ".join(m for m in members.namelist() if m.endswith(".json"))[:300] or "none"
                raise UserError(f"{origin}: one {name} is expected in it, not {len(named)}; its JSON files: {tables}")
            bar = tqdm(total=named[0].file_size, desc=name, unit="B", unit_scale=True, leave=False)
            with members.open(named[0]) as source, part.open("wb") as target, bar:
                while chunk := source.read(1 << 16):
                    target.write(chunk)
                    bar.update(len(chunk))
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise UserError(f"{origin}: no whole zip archive: {error}") from None


class _Remote(io.RawIOBase):
    """A file on a server, read by ranges. `size` is None where the server sends whole files only."""

    def __init__(self, client: httpx.Client, url: str) -> None:
        self._client, self._url, self._at = client, url, 0
        response = _tried(self._range, 0, 1)
        total = response.headers.get("content-range", "").rpartition("/")[2]
        self.size = int(total) if response.status_code == 206 and total.isdigit() else None

    def _range(self, start: int, stop: int) -> httpx.Response:
        headers = {"Range": f"bytes={start}-{stop - 1}", "Accept-Encoding": "identity"}
        with self._client.stream("GET", self._url, headers=headers) as response:
            response.raise_for_status()
            if response.status_code == 206:  # else the whole archive would come
                response.read()
            return response

    def readinto(self, buffer: Any) -> int:
        stop = min(self._at + len(buffer), self.size or 0)
        if stop <= self._at:
            return 0
        data = _tried(self._range, self._at, stop).content
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self.size or 0}[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


def _stream(client: httpx.Client, url: str, part: Path) -> None:
    with client.stream("GET", url) as response, part.open("wb") as file:
        response.raise_for_status()
        if response.headers.get("content-type", "").startswith("text/html"):
            raise UserError(f"{url}: a web page came instead of the file")
        size = int(response.headers.get("content-length", 0)) or None
        with tqdm(total=size, desc=Path(url).name, unit="B", unit_scale=True, leave=False) as bar:
            for chunk in response.iter_bytes():
                file.write(chunk)
                bar.update(len(chunk))


def _tried(call: Callable[..., T], *arguments: Any) -> T:
    """Again after a growing wait where the fault may pass: a broken connection, 429, 5xx."""
    import httpx
    from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential

    def passing(error: BaseException) -> bool:
        if isinstance(error, httpx.HTTPStatusError):
            return error.response.status_code == 429 or error.response.status_code >= 500
        return isinstance(error, httpx.TransportError)

    waits = wait_exponential(multiplier=WAIT, max=30)
    retrying = Retrying(retry=retry_if_exception(passing), stop=stop_after_attempt(TRIES), wait=waits, reraise=True)
    return retrying(call, *arguments)


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to; it takes the name once it is whole, and is gone after an error."""
    for left in abandoned(path, "part"):
        shutil.rmtree(left, ignore_errors=True)
    prefix = f".{path.name}.part-{os.getpid()}-"
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=prefix) as folder:
        part = Path(folder) / path.name
        yield part
        part.replace(path)


def _sha256(path: Path) -> str:
    data = path.read_bytes()
    return hashlib.sha256(data if path.suffix == ".pkl" else data.replace(b"\r\n", b"\n")).hexdigest()


def _read_checksums(folder: Path) -> dict[str, str]:
    path = folder / CHECKSUMS
    if not path.exists():
        return {}
    try:
        recorded = json.loads(path.read_text(encoding="utf-8"))
        return {str(name): str(value) for name, value in recorded.items()}
    except (ValueError, RecursionError, AttributeError) as error:
        raise UserError(f"{path}: not the checksums that fetch keeps ({error}); delete it") from None
