"""Questions worded by a language model, checked, and asked again where they do not hold.

    {"verb": "put", "object": "?", "relations": ["into cabinet"]}  ->  What did the camera wearer put into the cabinet?

The answers of action questions stay the annotation's words; the model never sees them. A question that fails the check
is asked again at most twice, with what is wrong with it; then the template's wording is used. For purpose questions
the model writes question and answer from the clip's actions; a pair whose answer is not to be found in them is dropped.
"""
