"""WorldRetriever (arXiv 2405.03272): experts report on a video, the world is looked up, a language model answers."""
