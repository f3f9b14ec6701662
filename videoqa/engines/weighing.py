"""How probable each choice is for the rows of a batch: the model goes on behind what a row may well begin with.

Behind "8" stands "5" with 0.3 and "." with 0.1: of "8" itself 0.6 is left, and behind "8." the tenths are looked at.
The beginnings of all rows grow in one pass where the model takes it (Network.grow), else one after the other.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence

from videoqa.engines.choices import Behind, Choices
from videoqa.engines.choices import Path as Ids
from videoqa.engines.decoding import Choosing, next_chances, settled
from videoqa.engines.prefixes import Batch, Network, Twigs


def weigh(network: Network, batch: Batch, choices: Choices, how: Choosing) -> list[dict[str, float] | None]:
    """Log-probability of each choice for each row of the batch, which is used up; None where numbers are not usable."""
    known: dict[Ids, list[Behind | None]] = {}
    rows = range(len(batch.rows))

    def likely(row: int, path: Ids) -> bool:
        return choices.followed({b: behind for b in known if (behind := known[b][row]) is not None}, path)

    def after(beginning: Ids) -> list[Ids]:
        return [path for path in choices.beginnings(len(beginning) + 1) if path[:-1] == beginning]

    def grow(twigs: Twigs, paths: Sequence[Ids]) -> None:
        for beginning in dict.fromkeys(paths):
            places = [n for n, path in enumerate(paths) if path == beginning]
            every: list[Behind | None] = [None] * len(rows)  # of rows that are not likely to begin so
            for n, behind in zip(places, next_chances(twigs.logits[places], choices, beginning, how), strict=True):
                every[twigs.rows[n]] = behind
            known[beginning] = every
        if longer := [(n, path) for n, one in enumerate(paths) for path in after(one) if likely(twigs.rows[n], path)]:
            grown = network.grow(twigs, [n for n, _ in longer], [path[-1] for _, path in longer])
            grow(grown, [path for _, path in longer])

    def follow(beginning: Ids, branch: Batch) -> None:
        import torch

        known[beginning] = next_chances(branch.logits, choices, beginning, how)
        longer = [path for path in after(beginning) if any(likely(row, path) for row in rows)]
        for one in longer:
            twig = copy.copy(branch)
            if one is not longer[-1]:  # the last one may use up what the others have left
                twig.cache = copy.deepcopy(branch.cache)  # of whatever layers: recurrent ones have their own states
            network.step(twig, torch.full_like(branch.lengths, one[-1]))
            follow(one, twig)

    if network.grows:
        grow(Twigs(batch, rows, [()] * len(rows), batch.logits), [()] * len(rows))
    else:
        follow((), batch)
    return settled(known, choices)
