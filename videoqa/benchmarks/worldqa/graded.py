"""Answers whose score by key points is known, for judge-check: to each question the ground truth (1), half of it (0.5),
the whole with something added (0.5), one half right and the other contradicted (0.3), and another answer (0). All of it
is invented; each ground truth states two facts, so that half of it is one of them."""

from __future__ import annotations

from dataclasses import dataclass

from videoqa.probes import ATTACKS, Probe, attacks, confident
from videoqa.rubric import Rubric
from videoqa.scorer import Item


@dataclass(frozen=True, slots=True)
class Case:
    """A question on a video and what might be answered."""

    question: str
    truth: str
    shortened: str
    addition: str
    contradicted: str
    other: str

    def answers(self) -> dict[str, str]:
        """The answers by kind, a key of videoqa.probes.KINDS."""
        return {
            "truth": self.truth,
            "shortened": self.shortened,
            "added": f"{self.truth} {self.addition}",
            "contradicted": self.contradicted,
            "other_clip": self.other,
        }


CASES = (
    Case(
        "Why does the boy hold his umbrella in front of him and not above?",
        "The rain comes from the front because of the wind, and he wants to keep his face dry.",
        "The rain comes from the front because of the wind.",
        "His mother told him to.",
        "The rain comes from the front because of the wind, but he does not mind that his face gets wet.",
        "He wants to hide a present from his sister.",
    ),
    Case(
        "Why do the people in the hall stand up and clap?",
        "The concert is over, and they liked it very much.",
        "The concert is over.",
        "They also want to be the first at the wardrobe.",
        "The concert is over, and they are glad because it was bad.",
        "A fire alarm is ringing.",
    ),
    Case(
        "What does the baker do with the toothpick, and why?",
        "He sticks it into the cake to see whether dough clings to it, since a cake that is done leaves it clean.",
        "He sticks it into the cake.",
        "Then he cleans his teeth with it.",
        "He sticks it into the cake to let hot air out, which has nothing to do with whether it is done.",
        "He builds a small flag for a birthday party.",
    ),
    Case(
        "Why does the woman put a coin into the trolley at the shop?",
        "The coin opens the lock, and she gets it back when she returns the trolley.",
        "The coin opens the lock.",
        "The trolley was made in Sweden.",
        "The coin opens the lock, and the shop keeps it as a fee.",
        "She is paying for a loaf of bread.",
    ),
    Case(
        "Why does the dog bark at the door and then wag its tail?",
        "It hears somebody come, and it is glad because it knows the person.",
        "It hears somebody come.",
        "It has also eaten the man's shoes.",
        "It hears somebody come, and it is afraid because it is a stranger.",
        "It wants its food bowl filled.",
    ),
    Case(
        "Why does the climber rub white powder on his hands?",
        "The powder dries the sweat, so that his fingers do not slip off the rock.",
        "The powder dries the sweat.",
        "It also protects him from the sun.",
        "The powder dries the sweat, and it makes his fingers slide more easily over the rock.",
        "He has just been baking bread for his friends.",
    ),
    Case(
        "Why does the waiter take the plate away again?",
        "The guest had ordered fish and got meat, so the waiter brings the right dish.",
        "The guest had ordered fish and got meat.",
        "The restaurant is closing soon.",
        "The guest had ordered fish and got meat, and the waiter lets him go without any dish.",
        "The guest has finished eating and wants to pay.",
    ),
    Case(
        "Why does the mechanic jump on the handle of the wrench?",
        "The bolt is rusted tight, and his weight gives more force than his arms.",
        "The bolt is rusted tight.",
        "He is in a hurry because his train leaves.",
        "The bolt is rusted tight, although jumping gives less force than pulling by hand.",
        "He is dancing to the radio.",
    ),
    Case(
        "Why does everyone at the table look at the old man before they eat?",
        "He is the eldest, and by custom nobody begins before him.",
        "He is the eldest.",
        "He has also cooked the whole meal by himself.",
        "He is the eldest, and by custom he must be the last to begin.",
        "He has spilled soup on his shirt.",
    ),
    Case(
        "What is the girl doing with the jar and the candle?",
        "She puts the jar over the candle to show that the flame goes out without air.",
        "She puts the jar over the candle.",
        "She is going to sell the jar.",
        "She puts the jar over the candle to show that the flame burns brighter without air.",
        "She is filling the jar with jam.",
    ),
    Case(
        "Why does the driver stop although the road is empty?",
        "The traffic light is red, and the rule holds also when nobody is coming.",
        "The traffic light is red.",
        "His car has run out of petrol.",
        "The traffic light is red, but the rule does not hold when nobody is coming; he stops to phone.",
        "He has reached his house.",
    ),
    Case(
        "Why does the man whisper on the telephone?",
        "He sits in a library, and talking loudly would disturb the readers.",
        "He sits in a library.",
        "He is planning a surprise party.",
        "He sits in a library, where everyone is allowed to talk as loudly as they like.",
        "His throat hurts because he is ill.",
    ),
    Case(
        "Why does the farmer look at the swallows and hurry to bring in the hay?",
        "The swallows fly low, which says that rain is coming, and wet hay would rot.",
        "The swallows fly low, which says that rain is coming.",
        "The swallows have eaten his grain.",
        "The swallows fly low, which says that rain is coming, and the hay has to be wet to keep well.",
        "He wants to feed his horses before the race.",
    ),
    Case(
        "Why does the mother laugh after the child has said a word?",
        "It is the child's first word, and she is happy and proud.",
        "It is the child's first word.",
        "She is going to buy a dog for the child.",
        "It is the child's first word, and she is annoyed about it.",
        "She has seen a clown outside the window.",
    ),
    Case(
        "Why does the swimmer wear a cap and shave his arms?",
        "Both make his body smoother in the water, so that he swims faster.",
        "Both make his body smoother in the water.",
        "He does it also because his coach pays him.",
        "Both make his body smoother in the water, so that he swims more slowly and trains harder.",
        "He is on his way to a wedding.",
    ),
    Case(
        "What is the sound at the beginning, and what do the pupils do because of it?",
        "It is the school bell, and the pupils run out into the yard because the lesson is over.",
        "It is the school bell.",
        "Two of them are brothers.",
        "It is the school bell, and the pupils sit down because the lesson begins.",
        "It is a train, and people step back from the platform's edge.",
    ),
    Case(
        "Why does the woman give the plant pot a quarter turn?",
        "Plants grow towards the light, and turned now and then it stays straight.",
        "Plants grow towards the light.",
        "The pot belongs to her neighbour.",
        "Plants grow towards the light, and she turns it so that it becomes as crooked as possible.",
        "She is looking for a key below the pot.",
    ),
    Case(
        "Why does the player raise his hand and help his opponent up?",
        "He admits that he fouled him, and he wants to show that he is sorry.",
        "He admits that he fouled him.",
        "He has also scored two goals today.",
        "He admits that he fouled him, but he is not sorry at all and only wants to save time.",
        "He is asking the trainer for a drink.",
    ),
    Case(
        "Why does the cook put the hot eggs into cold water?",
        "The cold stops the cooking, and the shell comes off more easily.",
        "The cold stops the cooking.",
        "The eggs were brought from a farm nearby.",
        "The cold stops the cooking, and the shell sticks more firmly to the egg.",
        "He is washing the dishes after dinner.",
    ),
    Case(
        "Why do the two men bow to each other instead of shaking hands?",
        "They are in Japan, where people greet each other by bowing.",
        "They are in Japan.",
        "Both of them own a company that makes cameras.",
        "They are in Japan, where bowing is what people do to insult each other.",
        "They have both lost a coin on the floor.",
    ),
)


def probes(rubric: Rubric, ours: Rubric) -> list[Probe]:
    """All answers to all cases, with attacks on the wrong ones (videoqa.probes.attacks)."""
    made = []
    for number, case in enumerate(CASES):
        answers = {**case.answers(), "long": confident(case.other), "empty": "", **attacks(case.other, rubric, ours)}
        for kind, text in answers.items():
            base = "other_clip" if kind in ATTACKS else None
            made.append(Probe(f"case {number}", kind, Item(case.question, case.truth, text), base, EXPECTED.get(kind)))
    return made


EXPECTED = {"truth": 1.0, "shortened": 0.5, "added": 0.5, "contradicted": 0.3, "other_clip": 0.0}
EXPECTED |= dict.fromkeys(("long", "empty", *ATTACKS), 0.0)
