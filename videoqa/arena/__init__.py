"""The arena: two hidden answers to one question, a verdict which of them is better, and ratings from many verdicts.

folder.py    the folder of an arena: which answers of which runs meet, and every verdict on them
referee.py   an engine that compares two answers, in both orders
votes.py     pairs, what is said of them, the file of people's votes
ratings.py   Elo, Bradley-Terry, who beat whom, and how far the ratings agree with the runs' scores
summary.py   all figures of an arena
shown.py     these as tables and as a page
"""
