"""`easg-bench fetch`: the public files that the dataset and the paper's judge are made from, onto this machine.

They go into the Hugging Face cache folder, and what the build and the judge need is made of them there:

    EASG.zip (only the annotations in it)    -> EASG_unict_master_final.json    graphs of the 221 clips
    easg_train.pkl, easg_val.pkl             clip frames: `python -m builder spans`; text is searched, nothing unpickled
    generate_QA.ipynb                        votes: `python -m builder read-notebook`
    rule.txt, eval_llama_review.py           -> judge_prompt.json, the paper's rubric; text is read, nothing is run
    clip_narrations.json, scale.json         the judge's context, the paper's calibration

Files of git repositories are pinned by commit, and the small ones by sha256 as well. Of the others no checksum is
published: the first one that arrives is kept in checksums.json (with a notice), and a later one must be the same.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from tqdm import tqdm

from videoqa.judge import OURS, Rubric, read_rubric
from videoqa.runs import write_json

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")

ANNOTATIONS = "EASG_unict_master_final.json"
NOTEBOOK = "generate_QA.ipynb"
RUBRIC = "judge_prompt.json"
VOTES = ("recorded_votes.json", "recorded_purpose_counts.json")
SPANS = "clip_spans.json"
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


_EVAL = "https://raw.githubusercontent.com/fpv-iplab/EASG-bench/caf7d0fff667e954ff4716dc5eaad9eaa5126f97/eval/"
_SPLITS = (
    "https://raw.githubusercontent.com/fpv-iplab/EASG/032c94726d58fe177859924ce05970279501da73/"
    "easg-generation/annts_in_new_format/"
)
SOURCES = (
    Source(
        "rule.txt", f"{_EVAL}rule.txt", "a5810e73c448751ee865a3b51a5ca4dc959ec09b48e6f3b6b2df457837a099b6", (RUBRIC,)
    ),
    Source(
        "eval_llama_review.py",
        f"{_EVAL}eval_llama_review.py",
        "567c2942fb9d9a3993100f4f51811889fbf2b4d8e80e4cdb0415c54675953065",
        (RUBRIC,),
    ),
    Source("scale.json", f"{_EVAL}scale.json", "b1d389c26655079c5dbf512c2f6f3973c8bd903ba54dc04cb462137d148f508e"),
    Source(
        "clip_narrations.json",
        f"{_EVAL}clip_narrations.json",
        "11f842b149ee1cc9ef245996835af466b45cae7ead6c3b859de08ce68b58dba6",
    ),
    Source(
        NOTEBOOK,
        "https://raw.githubusercontent.com/fpv-iplab/EASG-bench/c4b7e9d09d950e171f94ff80d403ccc746298a75/"
        "generate_QA.ipynb",
        instead=VOTES,
    ),
    Source("easg_train.pkl", f"{_SPLITS}easg_train.pkl", instead=(SPANS,)),
    Source("easg_val.pkl", f"{_SPLITS}easg_val.pkl", instead=(SPANS,)),
    # the address that the README of fpv-iplab/EASG names
    Source(ANNOTATIONS, "https://iplab.dmi.unict.it/sharing/EASG/EASG.zip"),
)
LICENCES = (
    "Licences, which you accept by using these files: EASG-bench is MIT; the repository of EASG has no licence file; "
    "both are made from Ego4D, whose licence agreement covers its videos and annotations."
)


def sources_folder() -> Path:
    """Where `fetch` puts the files: in the Hugging Face cache folder."""
    from huggingface_hub.constants import HF_HOME

    return Path(HF_HOME) / "easg-bench" / "sources"


def paper_rubric() -> Path:
    """The file of the paper's rubric, which is there after `easg-bench fetch`."""
    return sources_folder() / RUBRIC


def named_rubric(name: str) -> Rubric:
    """The rubric that a command line names: "ours", "paper" (after `easg-bench fetch`), or a file."""
    return OURS if name == "ours" else read_rubric(paper_rubric() if name == "paper" else name)


def fetch(
    folder: Path | None = None,
    local: Path | None = None,
    sources: Sequence[Source] = SOURCES,
    say: Callable[[str], None] = print,
) -> None:
    """Get every source into `folder` (default: `sources_folder()`), from the folder `local` instead of the network if
    one is given, make the rubric, and say what lies where and what to do next.

    A file that is there and right is not fetched again. Raises ValueError for a wrong checksum, ConnectionError where
    the network fails and FileNotFoundError where `local` lacks a file; what was already right stays.
    """
    folder = sources_folder() if folder is None else folder
    folder.mkdir(parents=True, exist_ok=True)
    with _client() as client:
        for source in sources:
            _bring(source, folder, local, client, say)
    if all((folder / name).exists() for name in ("rule.txt", "eval_llama_review.py")):
        rule, script = ((folder / name).read_text(encoding="utf-8") for name in ("rule.txt", "eval_llama_review.py"))
        write_json(folder / RUBRIC, rubric_of(rule, script))
        say(f"made      {folder / RUBRIC}")
    read_rubric(folder / RUBRIC)
    say(LICENCES)
    say("\n".join(["Next:", *_next(folder)]))


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
            raise ValueError(f"{source.name} from {origin}: sha256 {expected} is expected{kept}, it has {got}")
    say(f"{'copied' if local else 'fetched':9} {folder / source.name}")
    if not expected and local is None:
        recorded[source.name] = got
        write_json(folder / CHECKSUMS, recorded)
        say(f"          no checksum of it is published; kept for the next time: sha256 {got}")


def rubric_of(rule: str, script: str) -> dict[str, Any]:
    """The paper's rubric in the form that `read_rubric` reads, out of the texts of rule.txt and eval_llama_review.py.

    The script is read as a syntax tree and never run: the system message, the f-string of the user turn (its
    variables become the marks of the layout) and the figures of the sampling stand in it as constants.
    """
    marks = {"cap_str": "context", "ques": "question", "ans1": "answer", "ans2": "prediction", "prompt": "rule"}
    try:
        nodes = list(ast.walk(ast.parse(script)))
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        system = next(
            turn["content"]
            for node in nodes
            if isinstance(node, ast.Dict) and (turn := _constants(zip(node.keys, node.values, strict=True)))
            if turn.get("role") == "system"
        )
        content = next(
            node.value
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.JoinedStr)
            if isinstance(node.targets[0], ast.Name) and node.targets[0].id == "content"
        )
        layout = "".join(
            f"{{{marks[ast.unparse(part.value)]}}}" if isinstance(part, ast.FormattedValue) else ast.literal_eval(part)
            for part in content.values
        )
        drawn = next(given for call in calls if "top_p" in (given := _keywords(call)))
        seed = next(ast.literal_eval(call.args[0]) for call in calls if ast.unparse(call.func) == "setup_seed")
        longest = next(
            _keywords(call)["default"] for call in calls if call.args and ast.unparse(call.args[0]) == "'--max-tokens'"
        )
        sampling = {key: drawn[key] for key in ("temperature", "top_p")} | {"seed": seed, "max_new_tokens": longest}
    except (StopIteration, SyntaxError, LookupError, ValueError) as error:
        raise ValueError(f"eval_llama_review.py is not the public judge script: {error!r}") from None
    return {
        "source": "fpv-iplab/EASG-bench eval/ (MIT)",
        "system": system,
        "rule": rule,
        "layout": layout.replace("\n", "\\n"),
        "sampling": sampling,
    }


def _constants(pairs: Any) -> dict[Any, Any]:
    return {k.value: v.value for k, v in pairs if isinstance(k, ast.Constant) and isinstance(v, ast.Constant)}


def _keywords(call: ast.Call) -> dict[str, Any]:
    return {k.arg: k.value.value for k in call.keywords if k.arg and isinstance(k.value, ast.Constant)}


def _next(folder: Path) -> list[str]:
    """The commands that are still to be run to build the dataset."""
    commands = []
    if not all((folder / name).exists() for name in VOTES):
        commands.append(f"  python -m builder read-notebook {folder / NOTEBOOK}")
    if not (folder / SPANS).exists():
        commands.append(f"  python -m builder spans --source {folder}")
    return [
        *commands,
        f"  python -m builder build --source {folder} --out build/easg-bench",
        "  easg-bench run --data build/easg-bench --rubric paper --model MODEL --judge JUDGE",
    ]


# -- from a folder ----------------------------------------------------------------------------------------------------


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


# -- from the network -------------------------------------------------------------------------------------------------


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
            found = [member for member in members.infolist() if Path(member.filename).name == name]
            if len(found) != 1:
                tables = ", ".join(m for m in members.namelist() if m.endswith(".json"))[:300] or "none"
                raise ValueError(f"{origin}: one {name} is expected in it, not {len(found)}; its JSON files: {tables}")
            bar = tqdm(total=found[0].file_size, desc=name, unit="B", unit_scale=True, leave=False)
            with members.open(found[0]) as source, part.open("wb") as target, bar:
                while chunk := source.read(1 << 16):
                    target.write(chunk)
                    bar.update(len(chunk))
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"{origin}: no whole zip archive: {error}") from None


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
            raise ValueError(f"{url}: a web page came instead of the file")
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


# -- files ------------------------------------------------------------------------------------------------------------


@contextmanager
def _beside(path: Path) -> Iterator[Path]:
    """A file beside `path` to write to; it takes the name once it is whole, and is gone after an error."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=".part-") as folder:
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
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path}: not the checksums that fetch keeps ({error}); delete it") from None
