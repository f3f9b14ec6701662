"""Answers files of others, read in a process of their own: a damaged footer can end Arrow itself, by a C++ abort, and
with it the process that reads.

    AnswersReader().read("results/model/5f2c9a1e0b7d4c36/answers.parquet")     one worker for many files

The worker has bounds of its own: memory by the system, time by the one who waits. It gets no environment but what
Python needs, so no token is within a file's reach.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING

from videoqa.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

SECONDS = 60.0  # for one file; the largest that is allowed takes about one
MEMORY = 4 * 1024**3  # bytes of addresses; Arrow reserves more than it uses
READY = b"ready\n"  # what the worker says first
_KEPT = ("PATH", "LANG", "LC_ALL", "HOME", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT", "VIRTUAL_ENV")


class AnswersReader:
    """Reads answers files one after the other, from any thread; the worker is started with the first file and again
    after one that ended it."""

    def __init__(self, seconds: float = SECONDS) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._worker: subprocess.Popen[bytes] | None = None

    def read(self, path: Path, where: str = "") -> pa.Table:
        """As answers_file.read_answers, which says what is refused; UserError also for a file that ends the reader or
        takes it too long."""
        import pyarrow as pa

        where = where or str(path)
        with self._lock:
            worker = self._started()
            clock = threading.Timer(self._seconds, worker.kill)
            clock.daemon = True
            clock.start()
            try:
                assert worker.stdin is not None and worker.stdout is not None
                worker.stdin.write(json.dumps([str(path), where]).encode() + b"\n")
                worker.stdin.flush()
                answer = json.loads(worker.stdout.readline())
                content = _exactly(worker.stdout, answer["bytes"])
            except (OSError, ValueError, RecursionError) as error:  # an empty line: it is gone
                late = not clock.is_alive()
                self._end()
                why = f"it takes longer than {self._seconds:g} s" if late else "it ends the reader of parquet files"
                raise UserError(f"{where}: no parquet file that can be read ({why})") from error
            finally:
                clock.cancel()
        if answer["error"] is not None:
            raise UserError(answer["error"])
        return pa.ipc.open_stream(content).read_all()

    def close(self) -> None:
        """End the worker."""
        with self._lock:
            self._end()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._worker is None or self._worker.poll() is not None:
            root = str(Path(__file__).resolve().parents[1])
            env = {name: os.environ[name] for name in _KEPT if name in os.environ} | {"PYTHONPATH": root}
            self._worker = subprocess.Popen(
                [sys.executable, "-m", "videoqa.answers_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # what Arrow says when it aborts
                env=env,
            )
            if self._worker.stdout is None or self._worker.stdout.readline() != READY:
                self._end()
                raise RuntimeError(
                    "the process that reads answers files does not start: python -m videoqa.answers_worker"
                )
        return self._worker

    def _end(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.kill()
            for stream in (worker.stdin, worker.stdout):
                with contextlib.suppress(OSError):  # a pipe to a process that is gone
                    if stream is not None:
                        stream.close()
            worker.wait()


def _exactly(stream: IO[bytes], size: int) -> bytes:
    """So many bytes; ValueError where the stream ends before."""
    content = stream.read(size)
    if len(content) < size:
        raise ValueError(f"{len(content)} of {size} bytes came")
    return content


# -- in the worker ----------------------------------------------------------------------------------------------------


def _bounded() -> None:
    """No more memory than MEMORY, and no core files; where the system has such bounds."""
    try:
        import resource
    except ImportError:  # Windows
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # a lower bound is there already
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main() -> None:
    """Read the files that standard input names, a line each, and write what is in them to standard output: a line of
    JSON, and the table as an Arrow stream."""
    import pyarrow as pa

    from videoqa.answers_file import read_answers

    _bounded()
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()
    for line in sys.stdin.buffer:
        path, where = json.loads(line)
        error, content = None, b""
        try:
            table = read_answers(path, where)
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as stream:
                stream.write_table(table)
            content = sink.getvalue().to_pybytes()
        except MemoryError:
            error = f"{where}: no parquet file that can be read (it takes more than {MEMORY:,} bytes of memory)"
        except ValueError as fault:
            error = str(fault)
        sys.stdout.buffer.write(json.dumps({"error": error, "bytes": len(content)}).encode() + b"\n" + content)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
