"""What shares are called: the words of texts, the columns of tables, as their owner knows them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from precedents.adapters._collated import ItemView
from precedents.adapters._subject import Subject
from precedents.data.batch import Batch
from precedents.data.examples import Examples
from precedents.data.ids import Id, place_of, shown_id
from precedents.data.inputs import leaves
from precedents.errors import NotApplicable
from precedents.explain.shares import LayerShares, Shares
from precedents.explain.sharing import divided, divisible
from precedents.metrics.metric import Metric
from precedents.runtime.sparse import SparseRows
from precedents.seen import clipped
from precedents.views.heat import Both
from precedents.views.instance import Shown, is_picture, shown, unit
from precedents.views.marks import WordShares
from precedents.views.render import Texts

SAME = 1e-6  # how far a picture may be from the numbers that it is made of


@dataclass(frozen=True, eq=False)
class Sharing:
    """Divides scores of one metric on one subject."""

    metric: Metric
    name: str
    subject: Subject

    @property
    def applies(self) -> bool:
        """Whether words and columns have shares under this metric."""
        try:
            divisible(self.metric)
        except NotApplicable:
            return False
        return True

    def of(self, cases: Examples, index: int | str) -> Shares:
        """The score of the one case and the training instance with this place, or this id."""
        divisible(self.metric)
        subject, train = self.subject, self.subject.train
        index = place_of(index, train.ids, len(train), "index")
        train.unchanged()
        seen = tuple(shown(each.seen([i])[0], subject.render) for each, i in ((cases, 0), (train, index)))
        one, other = cases.take([0]), train.take([index])
        id = None if train.ids is None else train.ids[index]
        called = f"#{index}" if id is None else shown_id(id)
        titles = f"case\n{self._class(one)}", f"{called}\n{self._class(other)}"
        return self.between(one, other, (seen[0], seen[1]), titles, id)

    def _class(self, batch: Batch) -> str:
        label, names = int(batch.labels[0]), self.subject.classes
        return str(label) if names is None else clipped(str(names[label]))

    def between(
        self,
        case: Batch,
        train: Batch,
        seen: tuple[Shown, Shown],
        titles: tuple[str, str],
        own: Id | None,
    ) -> Shares:
        """The score of one case and one training instance in parts; `seen` is what a person sees of both."""
        divisible(self.metric)
        found = divided(self.metric, self.subject, case, train)
        layers = tuple(_laid_out(each, (case, train), seen) for each in found.layers)
        words = self._words(layers, seen)
        columns = {} if words is not None else self._columns(layers, seen[1])
        place = train.indices[0]
        return Shares(self.name, found.score, place, layers, *seen, titles, words, columns, own)

    def _words(self, layers: Sequence[LayerShares], seen: tuple[Shown, Shown]) -> Both:
        """Of texts: by the tokens of the first embedding, or by the features that words became."""
        case, precedent = seen
        if not isinstance(case, str) or not isinstance(precedent, str):
            return None
        first = next((each for each in layers if each.tokens[0] and each.case is not None), None)
        if first is not None and first.case is not None and first.precedent is not None:
            one, other = first.case.flatten(), first.precedent.flatten()
            return self._told(first.tokens[0], one, case), self._told(first.tokens[1], other, precedent)
        named = self._columns(layers, precedent) if self._features is not None else {}
        letters = any(str(name) != str(name).strip() for name in self._features or ())  # as of char_wb
        words = WordShares(tuple(named.items()), ordered=False, letters=letters)
        return (words, words) if named else None

    def _told(self, tokens: Sequence[int], shares: Tensor, text: str) -> WordShares:
        """The shares of tokens by their words; as many tokens as the text has words are these words."""
        word, values = spoken(self.subject), shares.tolist()
        own = text.split()
        if word is None and len(own) <= len(tokens) and not any(values[len(own) :]):
            return WordShares(tuple(zip(own, values, strict=False)), ordered=True)
        called = word or str
        return WordShares(
            tuple((called(token), share) for token, share in zip(tokens, values, strict=False)), ordered=True
        )

    def _columns(self, layers: Sequence[LayerShares], seen: Shown) -> dict[str, float]:
        """The shares of the columns that the first layer receives, by name; those of one column together."""
        first = next((each.columns for each in layers if each.columns is not None and each.of_input), None)
        if first is None or (first.ndim > 1 and not isinstance(seen, Mapping)):
            return {}
        flat = first.flatten()
        names, own = self._names(len(flat), seen), list(map(str, seen)) if isinstance(seen, Mapping) else []
        found: dict[str, float] = {}
        for place in flat.nonzero().flatten().tolist():
            name = _of_column(names(place), own)
            found[name] = found.get(name, 0.0) + float(flat[place])
        return found

    @property
    def _features(self) -> Sequence[str] | None:
        """What the model's owner calls the entries that it is fed, if an adapter knows."""
        found: Sequence[str] | None = getattr(self.subject.adapter, "features", None)
        return found

    def _names(self, count: int, seen: Shown) -> Callable[[int], str]:
        """What the entries that the model is fed are called."""
        features = self._features
        if features is not None and len(features) == count:
            return lambda place: str(features[place])
        made = self.subject.adapter.made_by is not None  # of the columns that are seen, in any order
        if isinstance(seen, Mapping) and len(seen) == count and not made:
            every = list(map(str, seen))
            return every.__getitem__
        return lambda place: f"x{place}"


def _laid_out(layer: LayerShares, pair: tuple[Batch, Batch], seen: tuple[Shown, Shown]) -> LayerShares:
    """The columns of flat rows in the shape of the pictures that are seen, if these are the rows' numbers."""
    columns = layer.columns
    if columns is None or columns.ndim != 1 or not layer.of_input or not all(map(_is_row, pair, seen)):
        return layer
    picture = seen[0]
    assert is_picture(picture)
    return replace(layer, columns=columns.reshape(picture.shape))


def _is_row(batch: Batch, seen: Shown) -> bool:
    """Whether what is seen is a grey picture of the numbers that the model is fed, in their order."""
    [first, *others] = leaves(batch.inputs)
    if others or isinstance(first, SparseRows) or not is_picture(seen) or seen.ndim != 2:
        return False
    row = unit(first[0].flatten())
    return row.numel() == seen.size and bool((row.cpu() - torch.as_tensor(seen).flatten()).abs().max() <= SAME)


def _of_column(feature: str, columns: Sequence[str]) -> str:
    """The column of a table that a feature was made of, by its name, as `colour_red`; else itself."""
    bare = feature.partition("__")[2] or feature
    made = [name for name in columns if bare == name or bare.startswith(f"{name}_")]
    return max(made, key=len, default=bare)


def spoken(subject: Subject) -> Callable[[int], str] | None:
    """What the model's owner calls a token, if that is known."""
    tokenizer: Any = getattr(subject.adapter, "tokenizer", None)
    if tokenizer is not None:
        special = {token for token in tokenizer.all_special_ids if token != tokenizer.unk_token_id}
        return lambda token: "" if token in special else str(tokenizer.convert_ids_to_tokens(token))
    render = subject.render.render if isinstance(subject.render, ItemView) else subject.render
    return render.word if isinstance(render, Texts) else None
