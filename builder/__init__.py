"""Builds datasets of questions: `python -m builder --help`.

Here stands what every benchmark's builder needs: the command line (__main__), a language model's replies on disk
(stages) and how to read them (replies), JSON files that people give (inputs), and the folder that is a dataset repo
(repo) on its way to the Hub (publish). A benchmark is a folder: easg.
"""
