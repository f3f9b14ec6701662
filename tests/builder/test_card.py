"""builder/card.py: what the Hub and people find on a dataset's card."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from huggingface_hub import DatasetCard

from builder.card import size_category
from builder.publish import content
from builder.repo import folder_sha256


@pytest.mark.parametrize(
    ("rows", "name"),
    [(0, "n<1K"), (60, "n<1K"), (1000, "1K<n<10K"), (1807, "1K<n<10K"), (10_000, "10K<n<100K"), (2_000_000, "n>1M")],
)
def test_the_hubs_word_for_a_number_of_rows(rows: int, name: str) -> None:
    assert size_category(rows) == name


def test_the_card_names_licence_size_paper_and_shows_a_row(demo_data: Path) -> None:
    card = DatasetCard.load(demo_data / "README.md")
    data = card.data.to_dict()
    assert data["license"] == "other" and data["license_name"] == "ego4d-license"
    assert data["license_link"].startswith("https://") and data["size_categories"] == ["n<1K"]
    block = re.search(r"```json\n(.*?)\n```", card.text, re.S)
    assert block is not None
    row = json.loads(block[1])
    assert row["type"] == "direct" and row["question"].endswith("?") and row["evidence"]
    assert "@article{rodin2025easgbench" in card.text and "$" not in card.text.split("```bibtex")[1]


def test_a_published_card_loads_by_the_repos_own_name_and_the_folder_stays_as_it_is(demo_data: Path) -> None:
    before = folder_sha256(demo_data)
    published = content(demo_data / "README.md", "org/name").decode()
    assert 'load_dataset("org/name", "direct", split="test")' in published and "path/of/this" not in published
    assert folder_sha256(demo_data) == before
    data = next(demo_data.glob("data/*.parquet"))
    assert content(data, "org/name") == data.read_bytes()
