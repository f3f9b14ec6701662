"""videoqa/folders.py: no folder of this machine in what others read, and nothing else is lost."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from videoqa.folders import command_without_folders, without_folders


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("john smith/private dir/run1", "run1"),
        ("/home/john smith/private dir/run1", "run1"),
        ("/home/john smith/my model", "my model"),
        ("/home/me/m float32, dist greedy", "m float32, dist greedy"),
        ("/home/me/models/", "models"),
        ("file:///home/me/models/mine", "mine"),
        ("file:/home/me/my%20models/mine", "mine"),
        ("file://localhost/home/me/mine", "mine"),
        (r"C:\Users\John Smith\models\mine float32", "mine float32"),
        ("C:/Users/me/mine", "mine"),
        (r"\\server\share\me\mine", "mine"),
        ("~/private dir/mine", "mine"),
        ("~john/mine", "mine"),
        ("../secret/mine", "mine"),
        ("/home/o'neil/data/x", "x"),
        ("/home/é è/做饭/x", "x"),
        ("file 'mine' of '/home/me/a b/mine'", "file 'mine' of 'mine'"),
    ],
)
def test_a_path_is_its_last_part(text: str, expected: str) -> None:
    assert without_folders(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Qwen/Qwen3-8B",
        "server:m@http://127.0.0.1:8000/v1/x",
        "https://example.org/a/b c/d",
        "org/judge bfloat16 transformers, dist greedy, easg-bench-1a2b3c4d",
        "2025-06-30T12:00:00+00:00",
        "at:0,1.5,3",
        "7/10",
        "",
    ],
)
def test_what_is_no_path_stays(text: str) -> None:
    assert without_folders(text) == command_without_folders(text) == text


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("easg-bench judge build/runs/mine --judge Qwen/Qwen3-8B", "easg-bench judge mine --judge Qwen/Qwen3-8B"),
        ("/opt/me/bin/easg-bench run --model=/data/x/y", "easg-bench run --model=y"),
        (
            "easg-bench run --data '/home/john smith/private dir/ds' --judge org/j",
            "easg-bench run --data ds --judge org/j",
        ),
        ("easg-bench run --out 'john smith/private dir/run1'", "easg-bench run --out run1"),
        ("easg-bench run --data /home/john smith/private dir/ds --out x", "easg-bench run --data ds --out x"),
        ("easg-bench run --model 'not closed /home/me/secret/x", "easg-bench run --model 'not closed x"),
    ],
)
def test_a_command_keeps_all_but_its_folders(command: str, expected: str) -> None:
    assert command_without_folders(command) == expected


_WORDS = st.text("abcxyzé做", min_size=1, max_size=5)
_DIRS = st.lists(st.lists(_WORDS, min_size=1, max_size=3).map(" ".join), min_size=2, max_size=4)


@given(_DIRS, _WORDS, st.sampled_from(["/{}", "{}", "file:///{}", "./{}", "~/{}", "C:\\{}", "\\\\{}"]))
def test_of_a_path_with_blanks_only_its_name_is_left(dirs: list[str], name: str, form: str) -> None:
    path = form.format("/".join([*dirs, name]))
    if "\\" in form:
        path = path.replace("/", "\\")
    assert without_folders(path) == name
    command = command_without_folders(shlex.join(["easg-bench", "run", "--out", path]))
    assert shlex.split(command) == ["easg-bench", "run", "--out", name]


@given(st.text(max_size=300))
def test_any_text_is_read_in_one_go(text: str) -> None:
    assert len(without_folders(text)) <= len(text)
    command_without_folders(text)
