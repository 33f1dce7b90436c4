"""Codes of other sizes: the error of their estimates, and how many candidates hold the true first ten."""

from collections.abc import Sequence
from statistics import median, pstdev

import torch
from torch import Tensor, nn

from benchmarks.index.works import CASES, Given, augmented, convolutions, hard, trained
from benchmarks.records import Record
from precedents import Explainer
from precedents.gradients.rows import Rows, joined
from precedents.index.codes import Coder, Codes, unit
from precedents.index.recall import Recall, sampled, some

SIZES = ((0, 1024), (128, 384), (256, 768), (512, 512))  # coordinates, and buckets of the rest
N = 8192  # of which the sample is 512
FIRST, NEAR = 10, 100  # of the most relevant: those that are looked for, and those whose errors count


def layers(n: int) -> Given:
    """An MLP of 51,000 parameters on drawn images of 12 x 12."""
    x, y = augmented(n + CASES, 12)
    x = x.flatten(1) / 255
    model = nn.Sequential(nn.Linear(144, 256), nn.ReLU(), nn.Linear(256, 50), nn.ReLU(), nn.Linear(50, 10))
    return trained(model, x, y, 600), (x[:n], y[:n]), x[n:]


MODELS = {
    "cnn": lambda n: convolutions(n, None),
    "mlp": layers,
    "hard": lambda n: hard(n, None),
}


def done(name: str, n: int | None) -> Record:
    """What codes of each size say of the same rows and cases."""
    torch.manual_seed(0)
    model, train, cases = MODELS[name](n or N)
    explainer = Explainer(model, train, index=False)
    true, relevance = explainer.scores(cases), explainer.relevance
    vectors, count = relevance.vectors, Recall(relevance).sample
    sketch, asked = Coder.sketch_of(vectors.width), explainer.subject.cases(cases)
    sample = torch.empty(count, sketch.length)
    rows = some(relevance, sampled(explainer.subject.train, len(vectors), count), count)
    sample[:] = unit(sketch, next(rows))
    coders = [Coder.of(sketch, sample, *size) for size in SIZES]
    codes: list[Codes | None] = [None] * len(SIZES)
    for places, block in vectors.rows(explainer.subject.train):
        for i, coder in enumerate(coders):
            found = coder.codes(block)
            codes[i] = room = codes[i] or found.room(len(vectors))
            room.put(slice(places.start, places.stop), found)
    case = joined(vectors.rows(asked), len(asked))
    tried = [tried_on(each, coder, case, true) for each, coder in zip(codes, coders, strict=True) if each]
    parameters = sum(p.numel() for p in model.parameters())
    return {"n": len(vectors), "parameters": parameters, "sample": count, "codes": tried}


def tried_on(codes: Codes, coder: Coder, case: Rows, true: Tensor) -> Record:
    """The errors of the estimates of codes, and the candidates that hold the true first."""
    about = codes.approximation(coder, case).about.double()
    near, first = (true.topk(k).indices for k in (NEAR, FIRST))
    errors = (about - true).gather(1, near).flatten().tolist()
    places = about.argsort(dim=1, descending=True, stable=True).argsort(dim=1)
    needed: Sequence[int] = sorted((places.gather(1, first).amax(dim=1) + 1).tolist())
    return {
        "kept": coder.basis.shape[1],
        "buckets": coder.buckets,
        "bytes": codes.bytes / len(codes),
        "error": pstdev(errors),
        "needed": median(needed),
        "needed95": needed[int(0.95 * (len(needed) - 1))],
    }
