"""Annotations -> questions -> dataset repo: `python -m builder build --help`.

The data flows annotations.py (files -> Clip, Graph, Box) -> questions.py (which actions are asked) -> wording.py
(slots -> sentences) -> grounding.py (boxes of the named objects) -> repo.py (parquet and the dataset card).
"""
