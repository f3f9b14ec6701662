"""What judge-check found of a judge, kept beside that judge's verdicts and told by every result that it makes.

STORE/3f0c1d2e9a4b.check.json    {"judge": "<its key>", "fit": false, "reasons": ["it hardly tells ..."], "rows": 30,
                                  "limits": {"min_auc": 0.9, ...}, "date": "2026-12-01T10:00:00+00:00"}

The key names everything that moves a judge's scores, so another rubric or mode is another judge. A check that was made
with other limits than today's does not count.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from videoqa.errors import UserError
from videoqa.files import short_hash, write_json
from videoqa.json_files import text_of
from videoqa.judge_check import LIMITS, Report
from videoqa.results import Check
from videoqa.store import default_store


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    judge: str
    limits: dict[str, float]
    check: Check


def keep_check(report: Report, folder: str | Path | None) -> Path:
    """Keep what was found; the file. `folder` is that of the verdict store (None: the usual one)."""
    path = _path(folder, report.judge)
    check = {"fit": not report.reasons, "reasons": report.reasons, "rows": report.rows, "date": _now()}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, {"judge": report.judge, "limits": LIMITS, "check": check})
    return path


def check_of(judge: str, folder: str | Path | None) -> dict[str, Any] | None:
    """What was found of the judge with this key, as results hold it (results.Check); None where it was not checked, or
    with other limits. Raises UserError for a file that holds something else."""
    path = _path(folder, judge)
    if not path.exists():
        return None
    try:
        kept = _File.model_validate_json(text_of(path))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise UserError(f"{path}: no file of judge-check: {place}: {first['msg']}. Check the judge again") from error
    if kept.judge != judge:
        raise UserError(f"{path} is of another judge: {kept.judge[:200]}. Check the judge again")
    return kept.check.model_dump(mode="json") if kept.limits == LIMITS else None


def _path(folder: str | Path | None, judge: str) -> Path:
    return Path(folder or default_store()) / f"{short_hash(judge)}.check.json"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
