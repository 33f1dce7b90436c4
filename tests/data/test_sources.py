"""Loaders, streams and datasets with labels anywhere: read alike, in one order, or refused."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from precedents import Examples, Explainer, InputError
from precedents.data.inputs import shapes
from precedents.data.sources import InMemory, marks

X = torch.randn(23, 5, generator=torch.Generator().manual_seed(0), dtype=torch.double)
Y = torch.arange(23) % 3
PLACES = st.integers(0, 22)


class Rows(Dataset):
    """Map-style; `form` makes items of an input and its label."""

    def __init__(self, form=lambda x, y: (x, y)) -> None:
        self.form, self.reads = form, 0

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, i: int):
        self.reads += 1
        return self.form(X[i], int(Y[i]))


class Targets(Rows):
    """With its labels as an attribute."""

    targets = Y.tolist()


class Stream(IterableDataset):
    """One after the other; `order` gives the places of each pass."""

    def __init__(self, form=lambda x, y: (x, y), order=lambda: range(23)) -> None:
        self.form, self.order = form, order

    def __iter__(self):
        return (self.form(X[i], int(Y[i])) for i in self.order())


class Plain:
    """Iterable, and nothing more."""

    def __iter__(self):
        return iter(Stream())


class Batches:
    """Batches of its own making."""

    def __iter__(self):
        return zip(X.split(4), Y.split(4), strict=True)


def as_dict(x, y):
    return {"x": x, "label": y}


def triple(x, y):
    return x, y, x[:2]


class Frame:
    """What pandas and polars frames have in common."""

    columns = ("a", "b", "kind")

    def __getitem__(self, names):
        import pandas as pd

        return pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": Y})[names]

    def to_numpy(self):
        return self[list(self.columns)].to_numpy()


WRITTEN = X.numpy().copy()
WRITTEN.flags.writeable = False
MAPPED = (WRITTEN, Y)  # as a file that is mapped for reading only
IN_FIVES = BatchSampler(SequentialSampler(range(23)), 5, drop_last=False)
SETS = {
    "loader": DataLoader(Rows(), batch_size=4),
    "loader of one batch": DataLoader(Rows(), batch_size=100),
    "loader without batches": DataLoader(Rows(), batch_size=None),
    "loader of tensors": DataLoader(TensorDataset(X, Y), batch_size=7),
    "loader of a stream": DataLoader(Stream(), batch_size=6),
    "loader with a sampler": DataLoader(
        Rows(), batch_sampler=BatchSampler(SequentialSampler(Rows()), 5, False)
    ),
    "stream": Stream(),
    "iterable": Plain(),
    "batches": Batches(),
    "file": MAPPED,
    "float labels": Rows(lambda x, y: (x, float(y))),
    "columns of labels": DataLoader(Rows(lambda x, y: (x, torch.tensor([y]))), batch_size=4),
}


def whole(examples: Examples, size: int = 6) -> torch.Tensor:
    return torch.cat([batch.inputs for batch in examples.batches(size)])


@pytest.mark.parametrize("data", SETS.values(), ids=SETS)
def test_every_kind_of_set_is_read_alike(data) -> None:
    examples = Examples.of(data)
    assert torch.equal(examples.labels, Y)
    for size in (1, 4, 6, 23):
        assert torch.equal(whole(examples, size), X)
    assert torch.equal(examples.take([22, 3, 3, 0]).inputs, X[[22, 3, 3, 0]])


@pytest.mark.parametrize("data", SETS.values(), ids=SETS)
def test_every_kind_of_set_is_explained_alike(data, model) -> None:
    wanted = Explainer(model, (X, Y)).explain(X[:3], k=4)
    found = Explainer(model, data).explain(X[:3], k=4)
    assert torch.equal(found.top.indices, wanted.top.indices)
    torch.testing.assert_close(found.top.scores, wanted.top.scores, rtol=1e-12, atol=1e-12)
    assert torch.equal(found.precedents_inputs, X[wanted.top.indices])


@given(
    st.lists(st.lists(st.integers(0, 22), min_size=1, max_size=6), min_size=1, max_size=4), st.integers(1, 23)
)
def test_a_stream_gives_any_instances_in_any_order(asked, size) -> None:
    examples = Examples.of(DataLoader(Stream(), batch_size=size))
    for indices in asked:
        assert torch.equal(examples.take(indices).inputs, X[indices])
        assert torch.equal(examples.take(range(min(indices), 23)).inputs, X[min(indices) :])


def test_consecutive_readings_go_through_a_stream_once() -> None:
    passes = []
    stream = Stream(order=lambda: passes.append(1) or range(23))
    examples = Examples.of(stream)
    before = len(passes)
    whole(examples, 4)
    assert len(passes) - before <= 1


def test_workers_read_what_the_main_process_reads(model) -> None:
    examples = Examples.of(DataLoader(Rows(), batch_size=4, num_workers=2))
    assert torch.equal(whole(examples, 5), X)
    assert torch.equal(examples.take([7, 1]).inputs, X[[7, 1]])


def test_reading_a_loader_leaves_the_random_state_alone() -> None:
    before = torch.get_rng_state()
    whole(Examples.of(DataLoader(Rows(), batch_size=4)))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize(
    "loader",
    [
        DataLoader(Rows(), batch_size=4, shuffle=True),
        DataLoader(Rows(), sampler=WeightedRandomSampler([1.0] * 23, 23)),
        DataLoader(Rows(), batch_sampler=BatchSampler(RandomSampler(Rows()), 4, False)),
    ],
    ids=["shuffle", "weighted", "batch sampler"],
)
def test_a_loader_that_shuffles_is_refused_with_what_to_type(loader) -> None:
    with pytest.raises(InputError, match=r"training set is a DataLoader that shuffles.*shuffle=False"):
        Examples.of(loader)


def test_a_loader_of_a_drawn_part_is_refused_with_that_part() -> None:
    loader = DataLoader(Rows(), batch_size=4, sampler=SubsetRandomSampler(range(3, 9)))
    with pytest.raises(
        InputError, match=r"Pass DataLoader\(torch.utils.data.Subset\(dataset, sampler.indices\)"
    ):
        Examples.of(loader)


@pytest.mark.parametrize("read", [list, lambda items: DataLoader(items, batch_size=4)], ids=["items", "loader"])
def test_the_part_of_an_item_that_is_no_tensor_is_named(read) -> None:
    named = [{"x": torch.ones(3), "text": f"t{i}", "label": i % 2} for i in range(6)]
    tied = [(torch.ones(3), i % 2, f"{i}.png") for i in range(6)]
    with pytest.raises(InputError, match=r"The field 'text' of the input of .* is an? .*Leave it out.*_fn"):
        Examples.of(read(named))
    with pytest.raises(InputError, match=r"Part 1 of the input of .* 0.* is an? .*Leave it out"):
        Examples.of(read(tied), labels=1)


def shuffled(change_at: int):
    """Passes over 23 places; from the third on, the places from `change_at` come in another order."""
    passes = []

    def order():
        passes.append(1)
        last = list(range(change_at, 23))
        return [*range(change_at), *(last if len(passes) < 3 else last[::-1])]

    return order


@pytest.mark.parametrize("wrap", [lambda s: s, lambda s: DataLoader(s, batch_size=4)], ids=["stream", "loader"])
def test_another_order_of_a_stream_is_found(wrap) -> None:
    with pytest.raises(InputError, match=r"Instance 0 of the dataset differs from its first reading"):
        Examples.of(wrap(Stream(order=shuffled(change_at=0))))
    with pytest.raises(InputError, match=r"Instance 14 of the dataset differs from its first reading"):
        whole(Examples.of(DataLoader(Stream(order=shuffled(change_at=14)), batch_size=2)), 5)


def test_a_stream_that_ends_early_is_found() -> None:
    passes = []
    stream = Stream(order=lambda: passes.append(1) or range(23 if len(passes) < 3 else 10))
    with pytest.raises(InputError, match=r"differs from its first reading"):
        whole(Examples.of(DataLoader(stream, batch_size=2)), 5)


@pytest.mark.parametrize("data", [Stream(order=lambda: ()), DataLoader(Stream(order=lambda: ()))])
def test_an_empty_stream_is_refused(data) -> None:
    with pytest.raises(InputError, match="The training set is empty"):
        Examples.of(data)


def test_items_that_depend_on_their_batch_are_refused() -> None:
    def centred(items):
        rows = torch.stack([x for x, _ in items])
        return rows - rows.mean(dim=0), torch.tensor([y for _, y in items])

    with pytest.raises(
        InputError, match=r"collate_fn of the training set makes something else of an item in a"
    ):
        Examples.of(DataLoader(Rows(), batch_size=2, collate_fn=centred))


def test_items_that_depend_on_their_place_in_the_batch_are_refused() -> None:
    def cut(items):
        rows = [x[: 2 + i % 3] for i, (x, _) in enumerate(items)]
        return nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.tensor([y for _, y in items])

    class Sums(nn.Linear):
        def forward(self, x):
            return super().forward(x.sum(dim=1, keepdim=True))

    with pytest.raises(InputError, match=r"output for an instance depends on its padding or on the others"):
        Explainer(Sums(1, 3), DataLoader(Rows(), batch_size=2, collate_fn=cut))


def test_batches_that_are_padded_differently_need_their_collate_fn() -> None:
    class Ragged:
        def __iter__(self):
            yield from ((X[i : i + 2, : 2 + i % 3], Y[i : i + 2]) for i in range(0, 22, 2))

    with pytest.raises(
        InputError, match=r"Instance 2 of the training set has the shape .* Pad or crop.*collate_fn"
    ):
        Examples.of(Ragged())


# Where labels are.


@pytest.mark.parametrize(
    ("data", "labels"),
    [
        (Rows(as_dict), None),
        (Rows(as_dict), "label"),
        (Rows(lambda x, y: {"x": x, "kind": y}), "kind"),
        (DataLoader(Rows(as_dict), batch_size=4), None),
        (Stream(as_dict), None),
        ({"x": X, "label": Y}, None),
        ({"x": X, "kind": Y}, "kind"),
        (Rows(lambda x, y: {"x": x}), Y),
    ],
)
def test_the_rest_of_a_dict_are_keyword_inputs(data, labels) -> None:
    examples = Examples.of(data, labels=labels)
    assert torch.equal(examples.labels, Y)
    assert torch.equal(examples.take([4, 2]).inputs["x"], X[[4, 2]])


@pytest.mark.parametrize(
    "data",
    [Rows(triple), DataLoader(Rows(triple), batch_size=4), TensorDataset(X, Y, X[:, :2])],
)
def test_the_label_may_be_any_part_of_an_item(data) -> None:
    with pytest.raises(InputError, match=r"of 3 parts, not a pair.*labels=-1"):
        Examples.of(data)
    examples = Examples.of(data, labels=1)
    assert torch.equal(examples.labels, Y)
    assert shapes(examples.take([3]).inputs) == [(1, 5), (1, 2)]


@pytest.mark.parametrize("labels", ["targets", Y, Y.tolist(), Y.numpy()])
@pytest.mark.parametrize("form", [lambda x, y: (x, y), lambda x, y: x], ids=["pairs", "inputs"])
def test_labels_by_themselves_spare_a_reading_of_all_inputs(labels, form) -> None:
    data = Targets(form)
    examples = Examples.of(data, labels=labels)
    assert data.reads < 10
    assert torch.equal(examples.labels, Y)
    assert torch.equal(whole(examples), X)


def test_inputs_without_labels_find_those_of_the_dataset() -> None:
    assert torch.equal(Examples.of(Targets(lambda x, y: x)).labels, Y)


@pytest.mark.parametrize("data", [Stream(lambda x, y: x), DataLoader(Rows(lambda x, y: x), batch_size=4)])
def test_a_stream_of_inputs_may_have_its_labels_apart(data) -> None:
    examples = Examples.of(data, labels=Y)
    assert torch.equal(examples.labels, Y)
    assert torch.equal(whole(examples), X)


def test_an_item_without_the_label_of_the_others_is_named() -> None:
    with pytest.raises(
        InputError, match=r"Item 9 of the training set is a tuple of 1 parts, without the label 1"
    ):
        Examples.of(Rows(lambda x, y: (x, y) if not torch.equal(x, X[9]) else (x,)))


def test_inputs_and_labels_may_come_apart() -> None:
    for inputs in (X, X.numpy()):
        assert torch.equal(Examples.of(inputs, labels=Y).take([1]).inputs, X[1:2])


def test_labels_that_differ_from_those_of_the_items_are_found() -> None:
    with pytest.raises(InputError, match=r"Item 0 of the training set has the label 1, but .* say 0"):
        Examples.of(Targets(lambda x, y: (x, y + 1)), labels="targets")


def test_a_frame_has_its_labels_in_a_column() -> None:
    examples = Examples.of(Frame(), labels="kind")
    assert torch.equal(examples.labels, Y)
    assert torch.equal(examples.take([5]).inputs, X[5:6, :2])
    with pytest.raises(InputError, match=r"with 'a', 'b', 'kind', not a pair .*labels='key'"):
        Examples.of(Frame())


@pytest.mark.parametrize(
    ("data", "labels", "message"),
    [
        (Rows(lambda x, y: {"x": x, "kind": y}), None, r"is a dict with 'x', 'kind', not a pair.*labels='key'"),
        (Rows(lambda x, y: {"x": x, "y": y, "label": y}), None, r"with 'x', 'y', 'label', not a pair"),
        (Rows(), "kind", r"without a label 'kind'"),
        (Rows(), 5, r"without a label 5"),
        (Rows(lambda x, y: (x, x[:3])), None, r"label of item 0 has the shape \(3,\).*multi-label.*argmax"),
        (Rows(lambda x, y: (x, y + 0.5)), None, r"label of item 0 is 0.5.*regressor"),
        (Stream(lambda x, y: x), None, r"Labels are needed"),
        (DataLoader(Rows(lambda x, y: (x, torch.eye(3)[y])), batch_size=4), None, r"\(4, 3\); .*multi-label"),
        (Targets(lambda x, y: x), Y[:5], r"have the shape \(5,\); 23 inputs need \(23,\)"),
    ],
)
def test_labels_that_are_not_found_are_refused_with_what_to_pass(data, labels, message) -> None:
    with pytest.raises(InputError, match=message):
        Examples.of(data, labels=labels)


def test_a_dict_model_is_explained_by_dicts() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(5, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x)

    model = Named().double()
    explainer = Explainer(model, Rows(as_dict))
    wanted = Explainer(model, (X, Y)).scores(X[:2])
    assert torch.equal(explainer.scores({"x": X[:2]}), wanted)
    assert torch.equal(explainer.scores({"x": X[:2], "label": Y[:2]}), wanted)
    torch.testing.assert_close(explainer.scores(as_dict(X[0], 0)), wanted[:1])


def test_marks_of_a_batch_are_those_of_its_instances() -> None:
    for inputs in (X, X.bfloat16(), Y, X > 0, X[:, :0]):
        alone = [marks(inputs[i : i + 1], [int(Y[i])])[0] for i in range(23)]
        assert marks(inputs, Y.tolist()) == alone


def test_things_are_tried_on_the_first_two_instances_unless_the_source_says_which() -> None:
    class Backwards(InMemory):
        largest = (3, 2)

    assert list(Examples.of((X, Y)).largest) == [0, 1]
    assert list(Examples.of((X[:1], Y[:1])).largest) == [0, 0]
    assert list(Examples(Backwards(X), Y).largest) == [3, 2]


def test_what_is_in_memory_is_not_streamed() -> None:
    assert not Examples.of((X, Y)).streamed
    assert not Examples(InMemory(X), Y).streamed
    assert Examples.of(Rows()).streamed
    assert Examples.of(Stream()).streamed
