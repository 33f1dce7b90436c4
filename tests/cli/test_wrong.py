"""What is wrong with a command or its input is one line on stderr and exit code 2; nothing is written."""

import json
import shlex
from pathlib import Path

import pytest

from cli.conftest import RUN
from precedents.runtime.sealed import sealed

FACTORIES = """
import torch
def raises(): raise KeyError("lost")
def leaves(): raise SystemExit(3)
def number(): return 3
def two(): return 1, 2
def lacking(): return {"model": torch.nn.Linear(2, 2), "train": None}
def more(): return {"model": 1, "train": 2, "test": 3, "tset": 4}
def no_model(): return 3, (torch.rand(4, 2), torch.arange(4) % 2), (torch.rand(4, 2), torch.arange(4) % 2)
def bad_set(): return torch.nn.Linear(2, 2), 5, (torch.rand(4, 2), torch.arange(4) % 2)
thing = 5
"""

NO_NUMBERS = ("--5", "²", "①")

WRONG = [
    ("nonsense", "No such command 'nonsense'"),
    ("metrics --nonsense", "No such option"),
    ("train --dataset digits", "Missing option '--model'"),
    ("train --dataset digist --model cnn", "No data set is named 'digist'. Did you mean 'digits'?"),
    ("train --dataset digits --model cnm", "No architecture is named 'cnm'. Did you mean 'cnn'?"),
    ("train --dataset digits --model cnn --epochs 0", "epochs is 0"),
    ("train --dataset digits --model cnn --epochs many", "Invalid value for '--epochs'"),
    ("train --dataset wine --model cnn", "The model cannot take inputs of the shape"),
    ("train --dataset digits --model bi_lstm", "The model cannot take inputs of the shape"),
    (f"train --dataset digits --model logistic_regression --out {RUN}", "is there already. Add --force"),
    ("train --dataset digits --model logistic_regression --out runs --force", "It has no run in it"),
    ("explain runs/nothing --case 1", "runs/nothing is no folder. Make one: precedents train"),
    ("explain runs --case 1", "runs has no run in it"),
    (f"explain {RUN}", "Missing option '--case'"),
    (f"explain {RUN} --case 9999", "There is no case 9999: the test set has"),
    (f"explain {RUN} --case=-1", "There is no case -1"),
    *((f"explain {RUN} --case={each}", f"There is no case {each}") for each in NO_NUMBERS),
    *((f"explain {RUN} --case 1 --label={each}", each) for each in NO_NUMBERS),
    *((f"answers {RUN} --cases 5 --index={each}", each) for each in NO_NUMBERS),
    (f"explain {RUN} --case 1 --metric gcc", "No metric is named 'gcc'"),
    (f"explain {RUN} --case 1 --metric cosine:nothing", "No feature map is named 'nothing'"),
    (f"explain {RUN} --case 1 --metric cos_last", "The model is linear: it has no hidden layer"),
    (f"explain {RUN} --case 1 -k 0", "k is 0"),
    (
        f"explain {RUN} --case 1 --html my_model.py",
        "my_model.py is there already. Name another file, or add --force",
    ),
    (f"explain {RUN} --case 1 --html none/page.html", "There is no folder none"),
    (f"explain {RUN} --case 1 --html runs", "runs is a folder"),
    ("explain --case 1", "Name one of the two: a run folder, or your own model"),
    (f"explain {RUN} --target my_model:factory --case 1", "Name one of the two"),
    ("audit runs/nothing", "runs/nothing is no folder"),
    (f"audit {RUN} --metrics gc,nothing", "No metric is named 'nothing'"),
    (f"audit {RUN} --metric nothing", "No metric is named 'nothing'"),
    (f"audit {RUN} --criteria nothing", "No criterion is named 'nothing'"),
    (f"audit {RUN} --criteria identical_class(j=2)", "No setting of criterion identical_class is named 'j'"),
    (f"audit {RUN} --cases 0", "Invalid value for '--cases'"),
    (f"audit {RUN} --fail-under 2", "Invalid value for '--fail-under'"),
    (f"audit {RUN} --rule papr", "Invalid value for '--rule'"),
    (f"audit {RUN} --report my_model.py", "my_model.py is there already"),
    (
        f"audit {RUN} --metrics gd --fail-under 0.5 --report page.html",
        "--fail-under is of --metric gc, but this audit has dot_grad. Pass --metric dot_grad, or name gc in",
    ),
    (f"audit {RUN} --metric cosine:residual --fail-under 0.5", "or name cosine:residual in --metrics"),
    (
        f"audit {RUN} --metrics gc --criteria identical_instance --fail-under 0.5 --report page.html",
        "--fail-under is of identical_class or identical_subclass. Name one of them in --criteria",
    ),
    (f"audit {RUN} --keep my_model.py", "is no folder and cannot become one"),
    ("audit --target my_model", "--target is 'my_model'. Write package.module:factory"),
    ("audit --target nowhere:factory", "nowhere cannot be imported: ModuleNotFoundError"),
    ("audit --target broken:factory", "broken cannot be imported: SyntaxError"),
    ("audit --target my_model:other", "my_model has no function 'other'. It has: factory"),
    ("audit --target factories:thing", "factories has no function 'thing'"),
    ("audit --target factories:raises", "factories:raises failed: KeyError: 'lost' (factories.py, line 3)"),
    ("audit --target factories:leaves", "factories:leaves failed: SystemExit: 3"),
    ("audit --target factories:number", "factories:number returned a int. Return (model, train, test)"),
    ("audit --target factories:two", "factories:two returned a tuple"),
    ("audit --target factories:lacking", "a mapping with no 'test'. Known keys: model, train, test"),
    ("audit --target factories:more", "a mapping with the key 'tset'"),
    ("audit --target factories:no_model", "The model is an int"),
    ("audit --target factories:bad_set", "The training set is an int"),
    ("demo runs", "runs is there already"),
    ("demo my_model.py --force --short", "File exists"),
]


def files(folder: Path) -> dict[str, bytes]:
    return {
        str(file): file.read_bytes() for file in folder.rglob("*") if file.is_file() and file.suffix != ".pyc"
    }


@pytest.fixture
def prepared(folder) -> Path:
    (folder / "factories.py").write_text(FACTORIES)
    (folder / "broken.py").write_text("def factory(: pass")
    return folder


@pytest.mark.parametrize(("command", "said"), WRONG, ids=[command for command, _ in WRONG])
def test_a_wrong_command_says_in_one_line_what_is_wrong(command, said, prepared, precedents) -> None:
    before = files(prepared)
    done = precedents(*shlex.split(command.replace("(", "\\(").replace(")", "\\)")))
    assert done.code == 2
    assert done.out == ""
    assert said in done.err
    lines = done.err.splitlines()
    assert lines[-1].startswith("precedents: ")
    assert sum(line.startswith("precedents: ") for line in lines) == 1
    assert "Traceback" not in done.err
    kept = {name: content for name, content in files(prepared).items() if "/audit-" not in name}
    assert kept == before


def read(run: Path) -> dict:
    """The manifest of a run without its checksum."""
    manifest = json.loads((run / "run.json").read_text())
    del manifest["checksum"]
    return manifest


def rewritten(run: Path, manifest: dict) -> None:
    """Another manifest, with a checksum that is its own."""
    (run / "run.json").write_text(sealed(json.dumps(manifest)))


def changed(**values: object):
    def change(run: Path) -> None:
        rewritten(run, read(run) | values)

    return change


def without(name: str):
    def change(run: Path) -> None:
        manifest = read(run)
        del manifest[name]
        rewritten(run, manifest)

    return change


def resealed(content: bytes):
    """Other weights, whose fingerprint the manifest has."""
    from hashlib import blake2b

    def change(run: Path) -> None:
        (run / "weights.safetensors").write_bytes(content)
        manifest = read(run)
        manifest["fingerprints"]["weights"] = blake2b(content, digest_size=16).hexdigest()
        rewritten(run, manifest)

    return change


def pickled() -> bytes:
    import io

    import torch

    file = io.BytesIO()
    torch.save({"1.weight": torch.rand(10, 64), "1.bias": torch.rand(10)}, file)
    return file.getvalue()


def foreign() -> bytes:
    import torch
    from safetensors.torch import save

    return save({"other": torch.rand(3)})


DAMAGE = {
    "no weights": (lambda run: (run / "weights.safetensors").unlink(), "has no weights.safetensors"),
    "empty weights": (lambda run: (run / "weights.safetensors").write_bytes(b""), "damaged or of another run"),
    "truncated weights": (
        lambda run: (run / "weights.safetensors").write_bytes((run / "weights.safetensors").read_bytes()[:-9]),
        "damaged or of another run",
    ),
    "pickled weights": (
        lambda run: (run / "weights.safetensors").write_bytes(pickled()),
        "damaged or of another",
    ),
    "pickled weights, sealed": (lambda run: resealed(pickled())(run), "has no weights of logistic_regression"),
    "foreign weights, sealed": (lambda run: resealed(foreign())(run), "has no weights of logistic_regression"),
    "no JSON": (lambda run: (run / "run.json").write_text("{"), "is no manifest of a run"),
    "no text": (lambda run: (run / "run.json").write_bytes(b"\xff\xfe\x00"), "is no manifest of a run"),
    "a list": (lambda run: (run / "run.json").write_text("[]"), "is no manifest of a run"),
    "another format": (changed(format=7), "has the format 7; this version reads 1"),
    "no format": (without("format"), "is no manifest of a run"),
    "no split": (without("split"), "is damaged"),
    "no recipe": (without("recipe"), "is damaged"),
    "an unknown data set": (
        changed(recipe={"dataset": "other", "model": "cnn"}),
        "No data set is named 'other'",
    ),
    "a split of another set": (changed(split={"train": [0, 1], "test": [2]}), "was trained on other data"),
    "a split out of range": (changed(split={"train": [10**6], "test": [2]}), "is damaged"),
    "a split of texts": (changed(split={"train": ["a"], "test": [2]}), "is damaged"),
    "other words": (changed(words=["the"]), "was trained on other data: the vocabulary"),
    "no fingerprints": (changed(fingerprints={}), "damaged or of another run"),
}


@pytest.mark.parametrize("name", DAMAGE)
@pytest.mark.parametrize("command", ["explain {} --case 1", "audit {} --metrics gc"])
def test_a_damaged_run_is_refused_in_one_line(name, command, folder, precedents) -> None:
    change, said = DAMAGE[name]
    change(folder / RUN)
    before = files(folder)
    done = precedents(*command.format(RUN).split())
    assert (done.code, done.out) == (2, "")
    assert len(done.err.splitlines()) == 1
    assert said in done.err
    assert files(folder) == before
