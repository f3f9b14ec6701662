"""The Ray cluster that copies of an engine run on: the one that there is, or a new one on this machine.

Ray can do without any password. With RAY_AUTH_MODE=token on every node and here, it wants the token of RAY_AUTH_TOKEN
(or of the file that RAY_AUTH_TOKEN_PATH names): set that wherever others reach the nodes' ports.
"""

from __future__ import annotations

import atexit
import contextlib
import logging
import os
import re
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from videoqa.errors import UserError

PATIENCE_S = 5.0  # for an address to answer
GONE_S = 20.0  # without an answer of the head; one that keeps its state elsewhere may be back by then
# Heads speak HTTP/2 (RFC 9113): its preface with empty settings; the answer begins with settings, after their length
GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0])
ANSWER = bytes([4])
ENDS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # Windows lacks SIGHUP


def connect(address: str | None) -> None:
    """Connect this process to the cluster, or start one on this machine. Raises UserError where there is none.

    `address`: see RayEngine; "local": a new one here, whatever there is. An address is tried first: Ray itself would
    wait for minutes where nobody answers."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray tells its makers of every start otherwise
    import ray

    if ray.is_initialized():
        have = ray.get_runtime_context().gcs_address
        if address not in (None, "auto", "local", have):
            raise UserError(
                f"this process is connected to the Ray cluster at {have}, and cannot be to {address} as well"
            )
        return
    place, source = (address, "the option address") if address not in (None, "auto") else _remembered()
    if place not in (None, "local"):
        _try(str(place), source)
    try:
        with _ends_kept():
            ray.init(
                address=place or address, log_to_driver=False, logging_level=logging.ERROR, include_dashboard=False
            )
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:  # RayError: a wrong token too
        raise UserError(
            f"the Ray cluster at {place or 'this machine'}: {' '.join(str(error).split())[:300]}"
        ) from error


@contextlib.contextmanager
def _ends_kept() -> Iterator[None]:
    """What ends this process by a signal still does: Ray would make an exception of SIGTERM that its own calls then
    abort by (134). The signals end it like Ctrl-C, which also ends the cluster that was started here, and then by what
    they are (143, 129). A process with handlers of its own keeps them."""
    if threading.current_thread() is not threading.main_thread():  # where Python has no handlers, nor has Ray
        yield
        return
    before = {number: signal.getsignal(number) for number in ENDS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, _end if handler == signal.SIG_DFL else handler)


def _end(number: int, _: Any) -> None:
    signal.signal(number, signal.SIG_DFL)  # a second one ends it at once
    atexit.register(_end_by, number)
    raise KeyboardInterrupt


def _end_by(number: int) -> None:
    import ray

    ray.shutdown()
    os.kill(os.getpid(), number)


def _remembered() -> tuple[str | None, str]:
    """The address that Ray takes where none is given, and where it stands: RAY_ADDRESS, then the file in which
    `ray start` keeps it, also of a cluster that is gone."""
    if place := os.environ.get("RAY_ADDRESS"):
        return place, "RAY_ADDRESS"
    folder = os.environ.get("RAY_TMPDIR") or os.environ.get("TMPDIR") or "/tmp"
    kept = Path(folder) / "ray" / "ray_current_cluster"
    try:
        place = kept.read_text().strip()
    except OSError:
        place = ""
    return place or None, f"{kept}, which `ray stop` removes; ?address=local starts a new cluster here"


def _try(place: str, source: str) -> None:
    """Raise UserError where no head of a cluster answers at `place` within seconds."""
    what = f"{place!r} ({source})"
    if "://" in place:
        raise UserError(f"the Ray address {what}: it is HOST:PORT of the head; the command runs on one of the nodes")
    host, _, port = place.rpartition(":")
    greeted = False
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_S) as line:
            line.sendall(GREETING)
            greeted = line.recv(4, socket.MSG_WAITALL)[3:] == ANSWER
    except TimeoutError as error:
        raise UserError(f"no Ray cluster answers at {what}: nothing came back within {PATIENCE_S:g} s") from error
    except (OSError, ValueError, OverflowError) as error:
        raise UserError(f"no Ray cluster answers at {what}, HOST:PORT of its head: {error}") from error
    if not greeted and os.environ.get("RAY_USE_TLS", "0") == "0":
        raise UserError(f"what answers at {what} is no head of a Ray cluster")


class Head:
    """The head of the cluster, which may go while rows are asked. Ray waits for it, and ends this process some time
    later without a line of its own."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._seen = self._looked = time.monotonic()

    @property
    def gone(self) -> bool:
        """Whether it has not answered for so long that it is given up."""
        return self._looked - self._seen > GONE_S

    def look(self) -> None:
        """Raise UserError where the head is gone. It is asked at most once a second."""
        now = time.monotonic()
        if now - self._looked < 1:
            return
        self._looked = now
        host, _, port = self._place.rpartition(":")
        with contextlib.suppress(OSError), socket.create_connection((host.strip("[]"), int(port)), timeout=PATIENCE_S):
            self._seen = now
        if self.gone:
            raise UserError(
                f"the head of the Ray cluster at {self._place} is gone. What came before is kept; once it runs again, "
                "the same command goes on"
            )


def reason(error: Exception) -> str:
    """Ray's reason for a death, without its ids and addresses, which differ each time."""
    text = " ".join(str(error).split())
    if re.search(r"node(?: was)? (?:is )?(?:dead|died|terminated|removed)|node failure", text, re.I):
        return "its node is gone"
    if re.search(r"SIGKILL|OOM|connection error|unavailable|EOF|unexpected", text, re.I):
        return "killed, out of memory, or its node is gone"  # Ray does not know which
    return text[:200]
