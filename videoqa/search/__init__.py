"""Search in texts: a query of a few words -> the passages that answer it best.

    spec.py    which search a short text names
    index.py   a file made of a folder of texts or of a Wikipedia dump (texts.py): SQLite's FTS5
    web.py     a search service on the web, with a key from the environment

What comes back (passages.py) was written by anybody: it is quoted to a model, never trusted.
"""
