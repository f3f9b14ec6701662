"""The `lighteval custom` model for easg_bench_frames and easg_bench_two_stage; see videoqa/hosts/lighteval/model.py."""

from videoqa.hosts.lighteval.model import VideoModel

__all__ = ["VideoModel"]
