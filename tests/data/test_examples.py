import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, Subset, TensorDataset

from precedents import Examples, InputError
from precedents.data.examples import InMemory, as_batch, checked_labels, checked_range, fingerprint
from precedents.data.inputs import leaves
from precedents.runtime.wording import a_type

X = torch.arange(24.0).reshape(6, 4)
Y = torch.tensor([0, 1, 2, 0, 1, 2])


class Rows(Dataset):
    """A map-style dataset; `change` is applied to every instance that is read."""

    def __init__(self, inputs=X, labels=Y, change=lambda x, i: x) -> None:
        self.inputs, self.labels, self.change = inputs, labels, change

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, i):
        return self.change(self.inputs[i], i), self.labels[i]


class Noisy(Rows):
    """Adds new noise at each reading, from a generator of its own."""

    def __init__(self, places=range(6)) -> None:
        random = torch.Generator().manual_seed(0)
        super().__init__(change=lambda x, i: x + torch.rand(x.shape, generator=random) if i in places else x)


class Shuffled(Rows):
    """Another order after each pass."""

    def __init__(self) -> None:
        super().__init__()
        self.read, self.random = 0, torch.Generator().manual_seed(0)
        self.order = torch.arange(6)

    def __getitem__(self, i):
        if self.read % 7 == 0:
            self.order = torch.randperm(6, generator=self.random)
        self.read += 1
        return super().__getitem__(int(self.order[i]))


def read(examples: Examples) -> torch.Tensor:
    return torch.cat([batch.inputs for batch in examples.batches(4)])


@pytest.mark.parametrize(
    "data",
    [
        (X, Y),
        [X, Y],
        (X.numpy(), Y.numpy()),
        (X.tolist(), Y.tolist()),
        (X, Y.to(torch.uint8)),
        (X, Y.int().numpy()),
        TensorDataset(X, Y),
        Rows(),
        Rows(X.numpy(), Y.numpy()),
        Rows(labels=Y.tolist()),
        Subset(Rows(), range(6)),
        list(zip(X, Y.tolist(), strict=True)),
        Examples.of((X, Y)),
    ],
    ids=lambda data: type(data).__name__,
)
def test_every_kind_of_training_set_is_read_the_same(data) -> None:
    examples = Examples.of(data)
    assert len(examples) == 6
    assert torch.equal(examples.labels, Y)
    assert examples.labels.dtype == torch.long
    assert torch.equal(read(examples), X)


def test_two_instances_in_a_list_are_instances() -> None:
    examples = Examples.of([(X[0], 0), (X[1], 1)])
    assert torch.equal(read(examples), X[:2])
    assert examples.labels.tolist() == [0, 1]


def test_a_pair_of_nested_inputs_is_a_pair() -> None:
    examples = Examples.of(((X, X[:, 0]), Y))
    assert [leaf.shape for leaf in leaves(examples.take([1, 3]).inputs)] == [(2, 4), (2,)]


def test_examples_pass_through() -> None:
    examples = Examples.of((X, Y))
    assert Examples.of(examples) is examples


def test_batches_are_consecutive_and_know_their_places() -> None:
    found = [list(batch.indices) for batch in Examples.of((X, Y)).batches(4)]
    assert found == [[0, 1, 2, 3], [4, 5]]


def test_take_gives_the_instances_in_the_asked_order() -> None:
    batch = Examples.of((X, Y)).take([5, 0, 5])
    assert torch.equal(batch.inputs, X[[5, 0, 5]])
    assert batch.labels.tolist() == [2, 0, 2]


def test_selected_examples_stay_what_they_were() -> None:
    selected = Examples.of(Rows()).selected([4, 1])
    assert isinstance(selected.source, InMemory)
    assert torch.equal(read(selected), X[[4, 1]])
    assert selected.labels.tolist() == [1, 1]


def test_relabelled_examples_keep_their_inputs() -> None:
    examples = Examples.of((X, Y))
    other = examples.relabelled(torch.zeros(6, dtype=torch.long))
    assert torch.equal(read(other), X)
    assert other.labels.sum() == 0
    assert torch.equal(examples.labels, Y)


def test_a_relabelled_batch_keeps_its_inputs() -> None:
    batch = Examples.of((X, Y)).take([0, 1])
    assert torch.equal(batch.relabelled(torch.tensor([2, 2])).inputs, batch.inputs)


@pytest.mark.parametrize("data", [(X[:0], Y[:0]), [], Rows(X[:0], Y[:0]), TensorDataset(X[:0], Y[:0])])
def test_an_empty_training_set_is_refused(data) -> None:
    with pytest.raises(InputError, match=r"The training set is empty"):
        Examples.of(data)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "has no labels"),
        (Y.double() + 0.5, r"are torch.float64; class numbers are integers, but instance 0 has 0.5.*regressor"),
        (Y.double() * torch.nan, r"class numbers are integers, but instance 0 has nan"),
        (Y.bool(), "are torch.bool; class numbers are integers"),
        (list("abcabc"), "are no numbers"),
        (np.array(list("abcabc")), "are no numbers"),
        (Y[:5], r"have the shape \(5,\); 6 inputs need \(6,\)"),
        (torch.eye(6, 3).long(), r"have the shape \(6, 3\).*multi-label.*argmax"),
    ],
    ids=["none", "float", "nan", "bool", "strings", "array of strings", "too few", "one-hot"],
)
def test_labels_that_are_no_class_numbers_are_refused(labels, message) -> None:
    with pytest.raises(InputError, match=message):
        Examples.of((X, labels))


@pytest.mark.parametrize(
    "label", [1.5, True, "cat", None, torch.tensor(1.5), torch.tensor(torch.nan)], ids=lambda label: repr(label)
)
def test_a_label_that_is_no_class_number_is_named_with_its_item(label) -> None:
    labels = [*Y.tolist()[:3], label, 0, 1]
    with pytest.raises(InputError, match=r"The label of item 3 is .* whole class numbers"):
        Examples.of(Rows(labels=labels))


@pytest.mark.parametrize(
    "data", [X, X.numpy(), list(X), TensorDataset(X), X.tolist()], ids=lambda d: type(d).__name__
)
def test_a_dataset_without_labels_is_refused(data) -> None:
    with pytest.raises(InputError, match=r"not a pair|Labels are needed"):
        Examples.of(data)


@pytest.mark.parametrize("data", [7, None, "rows.csv", iter([(X[0], 0)])], ids=lambda d: type(d).__name__)
def test_what_is_no_dataset_is_refused(data) -> None:
    with pytest.raises(InputError, match=rf"is {a_type(data)}. Pass a pair of tensors"):
        Examples.of(data)


@pytest.mark.parametrize("data", [{"x": X, "z": Y}, (["a", "b"], [0, 1])], ids=["dict", "strings"])
def test_what_cannot_be_read_is_refused(data) -> None:
    with pytest.raises(InputError, match=r"training set"):
        Examples.of(data)


def test_inputs_of_different_lengths_are_refused() -> None:
    with pytest.raises(InputError, match=r"different lengths: \[5, 6\]"):
        Examples.of(((X, X[:5]), Y))


def test_an_instance_of_another_shape_is_named() -> None:
    with pytest.raises(InputError, match=r"Instance 4 of the training set has the shape .* Pad or crop"):
        Examples.of(Rows(change=lambda x, i: x[:3] if i == 4 else x))


def test_an_input_that_is_no_tensor_is_named() -> None:
    with pytest.raises(InputError, match=r"The input of item 0 is a str"):
        Examples.of(Rows(change=lambda x, i: "text"))


def test_random_augmentation_is_found_at_the_door() -> None:
    with pytest.raises(
        InputError, match=r"Instance 0 of the dataset differs from its first reading.*augmentation"
    ):
        Examples.of(Noisy())


def test_shuffling_is_found_at_the_door() -> None:
    with pytest.raises(
        InputError, match=r"Instance \d of the dataset differs from its first reading.*shuffling"
    ):
        Examples.of(Shuffled())


def test_a_change_of_one_instance_is_found_when_it_is_read() -> None:
    examples = Examples.of(Noisy(places=[1]))
    with pytest.raises(InputError, match=r"Instance 1 of the dataset differs"):
        read(examples)


def test_a_change_of_a_label_is_found_when_it_is_read() -> None:
    data = Rows(labels=Y.clone())
    examples = Examples.of(data)
    data.labels[4] = 0
    with pytest.raises(InputError, match=r"Instance 4 of the dataset differs"):
        read(examples)


def test_fingerprints_tell_instances_apart() -> None:
    marks = {fingerprint(x, y) for x in (X[0], X[1], X[0, :2], X[0].reshape(2, 2)) for y in (0, 1)}
    assert len(marks) == 8


@pytest.mark.parametrize("value", [torch.tensor(3.0), torch.tensor([True, False]), torch.ones(2, 3).T])
def test_every_tensor_has_a_fingerprint(value) -> None:
    assert fingerprint(value, 0) == fingerprint(value.clone(), 0)


def test_labels_out_of_range_are_named() -> None:
    with pytest.raises(
        InputError,
        match=r"2 label\(s\) of the training set are out of range: instance 2 has label 2.*from 0 to 1",
    ):
        checked_range(Y, 2, "training set")


def test_negative_labels_are_out_of_range() -> None:
    with pytest.raises(InputError, match=r"instance 0 has label -1"):
        checked_range(Y - 1, 3, "training set")


def test_checked_labels_are_int64() -> None:
    assert checked_labels([0, 1], 2, "cases").dtype == torch.long


def test_one_case_becomes_a_batch_of_one() -> None:
    batch, single = as_batch(X[0], X[0])
    assert single
    assert batch.shape == (1, 4)


def test_a_batch_stays_a_batch() -> None:
    batch, single = as_batch(X[:2].numpy(), X[0])
    assert not single
    assert torch.equal(batch, X[:2])


@pytest.mark.parametrize("x", [X[0, :3], X[:, :3], X[None]], ids=lambda x: str(tuple(x.shape)))
def test_cases_of_another_shape_are_refused_with_what_to_pass(x) -> None:
    with pytest.raises(
        InputError, match=r"training instances have \(4,\). Pass one case \(4,\) or a batch \(m, 4\)"
    ):
        as_batch(x, X[0])


def test_no_cases_are_told_so() -> None:
    with pytest.raises(InputError, match="There are no cases"):
        as_batch((X[:0], X[:0]), (X[0], X[0]))


@pytest.mark.parametrize("x", ["text", [X[0], X[1], "text"], None], ids=["text", "mixed", "none"])
def test_cases_that_are_no_tensors_are_refused(x) -> None:
    with pytest.raises(InputError, match=r"cases"):
        as_batch(x, X[0])


def test_originals_are_seen_in_the_place_of_inputs() -> None:
    plain = Examples.of((torch.arange(6.0).reshape(3, 2), [0, 1, 0]))
    assert [value.tolist() for value in plain.seen([2, 0])] == [[4, 5], [0, 1]]
    assert plain.seen([]) == []
    kept = Examples(plain.source, plain.labels, ["a", "b", "c"])
    assert kept.seen([2, 0]) == ["c", "a"]
    assert kept.relabelled(torch.tensor([1, 1, 1])).selected([2, 1]).selected([1]).seen([0]) == ["b"]
