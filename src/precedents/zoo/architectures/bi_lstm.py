"""The paper's Bi-LSTM: embedding, two bidirectional LSTM layers of 16, one linear layer on the final states."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from precedents.zoo.text import PADDING


def bi_lstm(shape: tuple[int, ...], classes: int, width: int = 8, hidden: int = 16) -> nn.Module:
    """For texts over a vocabulary of shape[0] words, padded with 0; 20 thousand parameters on TREC."""
    return BiLstm(shape[0], classes, width, hidden)


class BiLstm(nn.Module):
    """Reads each text from its first word to its last, and back; padding is never read."""

    def __init__(self, words: int, classes: int, width: int, hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.lstm = nn.LSTM(width, hidden, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(2 * hidden, classes)

    def forward(self, tokens: Tensor) -> Tensor:
        """[b, length] to logits [b, classes]."""
        lengths = (tokens != PADDING).sum(dim=1).cpu()
        embedded = self.embedding(tokens)  # [b, length, width]
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        _, (states, _) = self.lstm(packed)  # [layers x directions, b, hidden]
        return self.head(torch.cat([states[-2], states[-1]], dim=1))
