"""EASG-Bench: action graphs of EASG -> questions -> dataset repo.

annotations.py (files -> Clip, Graph, Box) -> questions.py (which actions are asked) -> wording.py (slots ->
sentences) -> grounding.py (boxes of the named objects) -> repo.py (rows, parquet and the dataset card).
"""
