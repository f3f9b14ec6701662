"""The figures that the paper prints (arXiv 2405.03272): open-ended score x 100 by its judge, GPT-4, and CircularEval
accuracy. They are of its 1,007 questions; 851 of them were released, so they stand beside ours and in no column with
them. What the paper says in its text and contradicts in its own tables is not repeated here.
"""

from __future__ import annotations

from videoqa.benchmark import Published
from videoqa.benchmarks.worldqa.data import CHOICE, OPEN

TEXT, VIDEO, IMAGE, AUGMENTED, AGENT, HUMAN = "language-only", "video", "image", "augmented", "agent", "human"
PAPER = "arXiv 2405.03272, 1,007 questions"  # where they are printed, and what they are of
JUDGE = "GPT-4, 1,007 questions"

# Source: Table 2. Model, what it is given, open-ended, multiple choice.
TABLE2 = (
    ("FrozenBiLM", VIDEO, 8.21, 0.32),
    ("Otter-Video", VIDEO, 24.22, 6.11),
    ("VideoChat", VIDEO, 24.43, 1.29),
    ("LLaMA-Adapter", VIDEO, 25.87, 12.04),
    ("Video-LLaMA", VIDEO, 26.80, 4.81),
    ("Video-ChatGPT", VIDEO, 28.51, 13.25),
    ("mPLUG-Owl", VIDEO, 31.89, 0.75),
    ("GPT-4V", VIDEO, 35.37, 32.83),
    ("Qwen-VL", IMAGE, 24.04, 12.80),
    ("LLaVA", IMAGE, 31.31, 0.30),
    ("Vicuna", TEXT, 22.44, 0.0),
    ("ChatGPT", TEXT, 24.24, 0.0),
    ("GPT-4", TEXT, 28.73, 0.0),
    ("WorldRetriever", AGENT, 36.38, 36.59),
    ("Vicuna", AUGMENTED, 38.71, 23.90),
    ("ChatGPT", AUGMENTED, 46.50, 46.06),
    ("GPT-4", AUGMENTED, 48.46, 56.06),
    ("people", HUMAN, 72.43, 88.79),
)
# Source: the ablation of WorldRetriever; each row leaves out one expert more than the row before it.
ABLATION = (
    ("WorldRetriever without world knowledge", AGENT, 34.78, 35.46),
    ("WorldRetriever without world knowledge, speech", AGENT, 33.45, 34.12),
    ("WorldRetriever without world knowledge, speech, audio", AGENT, 33.23, 34.45),
    ("WorldRetriever without world knowledge, speech, audio, image", AGENT, 30.98, 2.23),
)
OPEN_ENDED = tuple(
    Published(model, kind, {OPEN: of_open}, of_open, judge=JUDGE, source=PAPER)
    for model, kind, of_open, _ in (*TABLE2, *ABLATION)
)
MULTIPLE_CHOICE = tuple(
    Published(model, kind, {CHOICE: accuracy}, accuracy, judge=PAPER, source=PAPER)
    for model, kind, _, accuracy in (*TABLE2, *ABLATION)
)
