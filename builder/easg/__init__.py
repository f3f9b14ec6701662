"""EASG-Bench: action graphs of EASG -> questions -> dataset repo.

annotations (files -> Clip, Graph, Box) -> questions (which actions are asked) -> wording or llm_wording (slots ->
sentences) -> grounding (boxes of the named objects) -> rows (of all configs) -> dataset (tables, picture and card).
With a model, votes, generic and attributes stand in between; pipeline says in which order.
"""
