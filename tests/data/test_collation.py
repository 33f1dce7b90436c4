"""What is found out of a collate_fn: where labels are, which order batches have, what a case is."""

from collections import namedtuple
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from collating import (
    TEST,
    TRAIN,
    Bag,
    Masked,
    Recurrent,
    columns,
    in_a_pair,
    listed,
    nested,
    packed,
    sorted_by_length,
    with_lengths,
    with_mask,
    with_offsets,
    with_weights,
)
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    Sampler,
    Subset,
    SubsetRandomSampler,
    WeightedRandomSampler,
)

from precedents import Examples, Explainer, InputError, UserCodeError

LABELS = torch.tensor([label for label, _ in TRAIN])


def swapped(items):
    """Items (text, label) for those that take (label, text)."""
    return [(text, label) for label, text in items]


Named = namedtuple("Named", "text lengths label")


@dataclass
class Held:
    """A batch that is an object, with names of its own."""

    goal: torch.Tensor
    text: torch.Tensor
    lengths: torch.Tensor


def held(items):
    text, lengths, labels = with_lengths(items)
    return Held(labels, text, lengths)


BATCHES = {
    "last": with_lengths,
    "in a pair": in_a_pair,
    "first": with_offsets,
    "first of four": with_weights,
    "of packed": packed,
    "of nested": nested,
    "a list in a dict": with_mask,
    "lists": listed,
    "a tuple with names": lambda items: Named(*with_lengths(items)),
    "an object": held,
    "a column": lambda items: (with_lengths(items)[0], with_lengths(items)[2][:, None]),
    "floating point": lambda items: (with_lengths(items)[0], with_lengths(items)[2].double()),
    "of arrays": lambda items: tuple(part.numpy() for part in with_lengths(items)),
    "a list": lambda items: list(with_lengths(items)),
    "sorted": sorted_by_length,
}


@pytest.mark.parametrize("collate", BATCHES.values(), ids=BATCHES)
def test_labels_are_found_wherever_they_are(collate) -> None:
    examples = Examples.of(DataLoader(TRAIN, batch_size=4, collate_fn=collate))
    assert torch.equal(examples.labels, LABELS)
    assert len(examples.take(range(3, 8)).inputs) == 5


def test_lengths_of_one_and_all_alike_are_no_labels() -> None:
    alike = [(label, text[:1] * 5) for label, text in TRAIN]
    assert torch.equal(Examples.of(DataLoader(alike, collate_fn=with_lengths)).labels, LABELS)


def several(items):
    labels, texts = columns(items)
    lengths = torch.tensor([len(text) for text in texts])
    return nn.utils.rnn.pad_sequence(texts, batch_first=True), lengths % 2, 2 - labels


def test_labels_that_could_be_two_parts_are_asked_for() -> None:
    loader = DataLoader(TRAIN, collate_fn=several)
    with pytest.raises(
        InputError, match=r"labels could be part 1 or 2. Say which .*Examples.of\(loader, labels=1\)"
    ):
        Examples.of(loader)
    for place in (2, -1):
        assert torch.equal(Examples.of(loader, labels=place).labels, 2 - LABELS)
    with pytest.raises(
        InputError, match=r"labels is 'kind', but the batches .* Name one of its parts: 0, 1, 2"
    ):
        Examples.of(loader, labels="kind")


@pytest.mark.parametrize("kept", [slice(0, 1), slice(0, 0)])
def test_batches_without_labels_are_refused(kept) -> None:
    with pytest.raises(InputError, match=r"no part of them is a class number for each item"):
        Examples.of(DataLoader(TRAIN, collate_fn=lambda items: with_lengths(items)[kept]))


def test_labels_may_be_given_by_themselves() -> None:
    loader = DataLoader(TRAIN, collate_fn=lambda items: with_lengths(items)[:2])
    assert torch.equal(Examples.of(loader, labels=2 - LABELS).labels, 2 - LABELS)
    explainer = Explainer(Recurrent(), Examples.of(loader, labels=LABELS))
    wanted = Explainer(explainer.subject.classifier.module, DataLoader(TRAIN, collate_fn=with_lengths))
    torch.testing.assert_close(explainer.scores(TEST), wanted.scores(TEST))


# Which instances there are, and in which order.


class Stream(IterableDataset):
    def __iter__(self):
        return iter(TRAIN)


class Own(Dataset):
    """A dataset with a collate_fn of its own."""

    collate_fn = staticmethod(with_lengths)

    def __len__(self) -> int:
        return len(TRAIN)

    def __getitem__(self, i: int):
        return TRAIN[i]


class Fetching(Own):
    """It gives several items at once."""

    def __getitems__(self, places):
        return [TRAIN[i] for i in places]

    def __getitem__(self, i: int):
        raise NotImplementedError


class Buckets(Sampler):
    def __iter__(self):
        order = sorted(range(30), key=lambda i: len(TRAIN[i][1]))
        return iter([order[start : start + 4] for start in range(0, 30, 4)])

    def __len__(self) -> int:
        return 8


SETS = {
    "shuffled": lambda make: make(TRAIN, batch_size=4, shuffle=True),
    "sampled": lambda make: make(TRAIN, sampler=RandomSampler(TRAIN)),
    "sampled in batches": lambda make: make(TRAIN, batch_sampler=BatchSampler(RandomSampler(TRAIN), 4, True)),
    "in buckets": lambda make: make(TRAIN, batch_sampler=Buckets()),
    "every place once": lambda make: make(TRAIN, sampler=SubsetRandomSampler(range(30))),
    "by workers": lambda make: make(TRAIN, batch_size=4, num_workers=2),
    "a part": lambda make: make(Subset(TRAIN + TEST, range(30)), shuffle=True),
    "a stream": lambda make: make(Stream(), batch_size=4),
    "fetched": lambda make: make(Fetching()),
    "a list": lambda make: Examples.of(TRAIN, collate_fn=with_lengths),
    "a dataset with its own": lambda make: Own(),
    "a stream by itself": lambda make: Examples.of(Stream(), collate_fn=with_lengths),
}


@pytest.mark.parametrize("data", SETS.values(), ids=SETS)
def test_instances_come_in_the_order_of_the_dataset(data) -> None:
    before = torch.get_rng_state()
    examples = Examples.of(data(partial(DataLoader, collate_fn=with_lengths)))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(examples.labels, LABELS)
    for size in (4, 30):
        batches = [batch.inputs for batch in examples.batches(size)]
        assert [member.item for batch in batches for member in batch.members] == TRAIN
        lengths = torch.cat([batch.arguments[1] for batch in batches])
        assert lengths.tolist() == [len(text) for _, text in TRAIN]
    assert [member.item for member in examples.take([29, 3, 3]).inputs.members] == [
        TRAIN[29],
        TRAIN[3],
        TRAIN[3],
    ]


@pytest.mark.parametrize(
    "sampler",
    [
        SubsetRandomSampler(range(20)),
        WeightedRandomSampler([1.0] * 30, 60),
        RandomSampler(TRAIN, replacement=True, num_samples=40),
        RandomSampler(TRAIN, num_samples=10),
    ],
    ids=["subset", "weighted", "replacement", "few"],
)
def test_a_sampler_that_takes_some_instances_is_refused_with_what_to_type(sampler) -> None:
    before = torch.get_rng_state()
    with pytest.raises(
        InputError,
        match=r"from the 30 instances of its dataset: some of them never, .*Subset\(loader.dataset, indices\)",
    ):
        Examples.of(DataLoader(TRAIN, sampler=sampler, collate_fn=with_lengths))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_sorting_collate_fn_is_undone_for_equal_lengths_too() -> None:
    alike = [(label, text[:1] * (2 + i % 2)) for i, (label, text) in enumerate(TRAIN)]

    def backwards(items):  # of equal lengths the last comes first
        return with_lengths(sorted(items, key=lambda item: len(item[1]))[::-1])

    torch.manual_seed(0)
    model = Recurrent(enforce_sorted=True).double()
    found = Explainer(model, DataLoader(alike, collate_fn=backwards)).scores(TEST)
    model.sorted = False
    wanted = Explainer(model, DataLoader(alike, collate_fn=with_lengths)).scores(TEST)
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-12)


def test_an_order_that_is_changed_later_is_found_by_the_labels() -> None:
    def late(items):
        return with_lengths(items[::-1] if len(items) == 7 else items)

    examples = Examples.of(DataLoader(TRAIN, collate_fn=late))
    assert torch.equal(examples.take(range(7)).inputs.made.order, torch.arange(7).flip(0))


# What is refused.


def test_a_collate_fn_that_drops_items_is_refused() -> None:
    with pytest.raises(InputError, match=r"collate_fn of the training set makes .* keep every item"):
        Examples.of(DataLoader(TRAIN, collate_fn=lambda items: with_lengths(items[:5])))


def test_a_collate_fn_that_draws_is_refused() -> None:
    def dropped(items):
        text, lengths, labels = with_lengths(items)
        return text * (torch.rand(text.shape) < 0.5), lengths, labels

    with pytest.raises(InputError, match=r"collate_fn of the training set makes something else|second reading"):
        Examples.of(DataLoader(TRAIN, collate_fn=dropped))


def test_items_that_change_are_named() -> None:
    data = list(TRAIN)
    examples = Examples.of(data, collate_fn=with_lengths)
    data[5] = (data[5][0], [*data[5][1], 4])
    with pytest.raises(InputError, match=r"Instance 5 of the dataset differs from its first reading"):
        list(examples.batches(8))


def test_items_that_change_among_many_are_named() -> None:
    data = TRAIN * 3
    examples = Examples.of(data, collate_fn=with_lengths)
    data[85] = (1, [3])
    with pytest.raises(InputError, match=r"Instance 85 of the dataset differs from its first reading"):
        list(examples.batches(90))


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(InputError, match=r"collate_fn is an int. Pass a function of a list of items"):
        Examples.of(TRAIN, collate_fn=3)


@pytest.mark.parametrize("data", [[], DataLoader([], collate_fn=with_lengths, sampler=[]), iter(())])
def test_an_empty_set_is_refused(data) -> None:
    with pytest.raises(InputError, match="training set is empty"):
        Examples.of(data, collate_fn=with_lengths)


WRONG = {
    "a number": 3.5,
    "another dict": {"x": 1},
    "a tensor": torch.zeros(2, 2),
    "none": None,
    "another batch": with_offsets(TEST),
    "texts": ["a b", "c"],
}


@pytest.mark.parametrize("x", WRONG.values(), ids=WRONG)
def test_cases_that_are_neither_items_nor_batches_are_refused(x) -> None:
    explainer = Explainer(Recurrent(), DataLoader(TRAIN, collate_fn=with_lengths))
    with pytest.raises(
        InputError, match=r"passed as cases is .* a tuple of an int, a list of an int, with or without"
    ):
        explainer.explain(x)


def of_texts(items):
    return with_offsets([(label, [int(word) for word in text.split()]) for label, text in items])


def test_a_case_that_the_collate_fn_fails_on_is_named() -> None:
    texts = [(label, " ".join(map(str, text))) for label, text in TRAIN]
    explainer = Explainer(Bag(), DataLoader(texts, collate_fn=of_texts))
    with pytest.raises(
        UserCodeError, match=r"collate_fn of the training set failed: ValueError: .*'one'.*, line"
    ):
        explainer.explain("one")
    with pytest.raises(
        InputError, match=r"passed as cases is a list of a float\. Pass one item .* a tuple of an int, a str"
    ):
        explainer.explain([3.5])
    with pytest.raises(InputError, match=r"There are no cases\. Pass at least one"):
        explainer.explain([])


# How a batch goes to the model.


class Whole(Recurrent):
    def forward(self, batch):
        return super().forward(*batch)


class WholeDict(Masked):
    def forward(self, batch):
        return super().forward(batch["tokens"], batch["mask"])


class AnyNames(Masked):
    def forward(self, **named):
        return super().forward(named["tokens"], named["mask"])


class OtherNames(Masked):
    def forward(self, x, keep):
        return super().forward(x, keep)


def with_more(items):
    """Beside what the model takes, texts that it does not."""
    return with_mask(items) | {"texts": [str(text) for _, text in items]}


FORWARDS = {
    "a tuple as a whole": (Whole, Recurrent, with_lengths),
    "a dict as a whole": (WholeDict, Masked, with_mask),
    "any names": (AnyNames, Masked, with_more),
    "names that forward does not have": (OtherNames, Masked, with_mask),
    "more than forward takes": (Masked, Masked, with_more),
}


@pytest.mark.parametrize(("kind", "same", "collate"), FORWARDS.values(), ids=FORWARDS)
def test_a_batch_goes_to_forward_as_it_takes_it(kind, same, collate) -> None:
    model, plain = kind().double(), same().double()
    plain.load_state_dict(model.state_dict())
    base = with_lengths if same is Recurrent else with_mask
    found = Explainer(model, DataLoader(TRAIN, collate_fn=collate)).scores(TEST)
    assert torch.equal(found, Explainer(plain, DataLoader(TRAIN, collate_fn=base)).scores(TEST))
