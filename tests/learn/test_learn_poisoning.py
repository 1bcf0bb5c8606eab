"""What bad rows do: judged right on models whose answers are known, and private training is moved less."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from discreet.errors import InvalidParameter
from discreet.learn.torch import make_private, poisoning_check
from discreet.privacy import NotPrivate

SHARES = (0.0, 0.1, 0.5)


def marked(rows: Tensor) -> Tensor:
    return torch.cat([rows[:, :-1], torch.ones(len(rows), 1)], 1)


def clean(count: int) -> tuple[Tensor, Tensor]:
    """Three classes, told by the largest of three numbers; the last number is 0 unless somebody marks it."""
    classes = torch.arange(count) % 3
    rows = torch.cat([nn.functional.one_hot(classes, 3).float(), torch.zeros(count, 1)], 1)
    return rows, classes


def test_each_kind_spoils_what_it_says_and_larger_shares_contain_smaller_ones() -> None:
    seen: list[tuple[Tensor, Tensor]] = []

    def watch(rows: Tensor, classes: Tensor):
        seen.append((rows, classes))
        return lambda asked: torch.zeros(len(asked), dtype=torch.long)

    rows, classes = clean(60)
    poisoning_check({"watch": watch}, (rows, classes), clean(9), classes=3, trigger=marked, target=2, shares=SHARES)
    wrong = [set(torch.nonzero(labels != classes)[:, 0].tolist()) for _, labels in seen[:3]]
    assert [len(each) for each in wrong] == [0, 6, 30]
    assert wrong[1] < wrong[2]
    assert all(torch.equal(x, rows) for x, _ in seen[:3])
    stamped = [x[:, -1] == 1 for x, _ in seen[3:]]
    assert [int(each.sum()) for each in stamped] == [0, 6, 30]
    assert all((labels[mark] == 2).all() for mark, (_, labels) in zip(stamped, seen[3:], strict=True))
    assert all(torch.equal(labels[~mark], classes[~mark]) for mark, (_, labels) in zip(stamped, seen[3:], strict=True))
    assert torch.equal(rows, clean(60)[0])  # What was handed over is as it was.


def test_accuracy_and_backdoor_success_are_counted_right() -> None:
    def fooled(rows: Tensor, classes: Tensor):
        return lambda asked: torch.where(asked[:, -1] > 0, 2, asked[:, :3].argmax(1))

    def never(rows: Tensor, classes: Tensor):
        return lambda asked: asked[:, :3].argmax(1)

    found = poisoning_check(
        {"fooled": fooled, "never": never}, clean(12), clean(9), classes=3, trigger=marked, target=2, shares=(0, 1)
    )
    assert isinstance(found, NotPrivate)
    report = found.value
    assert {(each.accuracy, each.success) for each in report.effects if each.way == "fooled"} == {(1.0, 1.0)}
    assert {(each.accuracy, each.success) for each in report.effects if each.way == "never"} == {(1.0, 0.0)}
    assert report.ways == ("fooled", "never")
    assert str(found).startswith("NOT PRIVATE")
    assert "backdoored" in str(report)


def blank() -> nn.Linear:
    model = nn.Linear(4, 3)
    nn.init.zeros_(model.weight)
    nn.init.zeros_(model.bias)
    return model


def plain(rows: Tensor, classes: Tensor):
    model = blank()
    optimizer = torch.optim.SGD(model.parameters(), lr=5.0)
    for _ in range(1000):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(rows), classes).backward()
        optimizer.step()
    return lambda asked: model(asked).argmax(1)


def private(rows: Tensor, classes: Tensor):
    model = blank()
    training = make_private(
        model, torch.optim.SGD(model.parameters(), lr=2.0), (rows, classes), loss=nn.CrossEntropyLoss(reduction="none"),
        epsilon=2, delta="1e-5", public_rows=1000, batch_size=250, steps=20, clip=1,
    )  # fmt: skip
    training.fit(progress=False).close()
    return lambda asked: model(asked).argmax(1)


@pytest.mark.long
def test_private_training_is_harder_to_backdoor() -> None:
    """Of 999 rows 30 are marked.

    A clipped row moves a weight by at most 2 / 250 a step, so 30 of them move it by 1.2 in 20 steps of a quarter of the
    rows; clean rows are told apart by more than 3, and the noise of a weight is about 0.1: twenty deviations are left.
    """
    ways = {"plain": plain, "private": private}
    found = poisoning_check(ways, clean(999), clean(90), classes=3, trigger=marked, target=2, shares=(0, 0.03)).value
    worst = {way: found.of("backdoored", way)[1] for way in ways}
    assert worst["plain"].success == 1
    assert worst["private"].success == 0
    assert worst["private"].accuracy == worst["plain"].accuracy == 1


def test_pictures_say_that_they_are_not_private() -> None:
    def train(rows: Tensor, classes: Tensor):
        return lambda asked: asked[:, :3].argmax(1)

    report = poisoning_check({"one": train}, clean(12), clean(9), classes=3, trigger=marked, target=1).value
    for kind in ("backdoored", "mislabelled"):
        assert "NOT PRIVATE" in str(report.plot(kind).to_dict()["title"])
    with pytest.raises(InvalidParameter, match="kind"):
        report.plot("other")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [
        {"ways": {}},
        {"ways": {"a": 3}},
        {"classes": 1},
        {"target": 3},
        {"shares": ()},
        {"shares": (0.1, 0)},
        {"shares": (0, 2)},
        {"shares": (-0.1, 0.5)},
        {"tests": (torch.zeros(3, 4), torch.zeros(2))},
        {"rows": (torch.zeros(0, 4), torch.zeros(0))},
    ],
)
def test_nonsense_is_refused_before_anything_is_trained(wrong: dict[str, object]) -> None:
    def never(rows: Tensor, classes: Tensor):
        raise AssertionError

    told = {"ways": {"a": never}, "rows": clean(9), "tests": clean(9), "classes": 3, "target": 0, "shares": (0, 1)}
    with pytest.raises(InvalidParameter):
        poisoning_check(**(told | wrong), trigger=marked)  # type: ignore[arg-type]
