"""Questions worded by a language model, checked, and asked for again where the check fails.

    {"verb": "put", "object": "?", "relations": ["into cabinet"]}  ->  What did the camera wearer put into the cabinet?

The answers of action questions remain the annotation's words; the model never sees them. A question that fails the
check is asked for again at most twice, with what is wrong with it; then the template's wording is used. For purpose
questions the model writes question and answer from the clip's actions; a pair that speaks of anything else is dropped.
"""
