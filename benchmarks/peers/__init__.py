"""Other libraries' ways to the same matrix: one file per way, and here what each needs to be installed."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Peer:
    """How a peer is installed, into an environment that has its package's name, and how it is run."""

    title: str
    package: str
    needs: tuple[str, ...]  # what pip installs
    note: str  # which way of the library's it is
    alone: tuple[str, ...] = ()  # what pip installs without the packages it asks for
    batches: tuple[int, ...] = ()  # sizes worth trying, where they are not those of the model


PEERS = {
    "captum": Peer(
        title="captum",
        package="captum",
        needs=("captum>=0.8",),
        note="TracInCP, per-example gradients of Linear and Conv2d layers",
    ),
    "captum_single": Peer(
        title="captum, one by one",
        package="captum",
        needs=("captum>=0.8",),
        note="TracInCP, a backward pass for each example",
        batches=(1, 8),
    ),
    "dattri": Peer(
        title="dattri",
        package="dattri",
        needs=("dattri>=0.3",),
        note="TracInAttributor without its random projection",
    ),
    "pydvl": Peer(
        title="pyDVL",
        package="pydvl",
        needs=("pydvl[influence]>=0.10",),
        note="gradient blocks with the identity as operator",
    ),
    "kronfluence": Peer(
        title="kronfluence",
        package="kronfluence",
        needs=("accelerate", "einops", "einconv", "opt-einsum", "safetensors", "tqdm"),
        note="pairwise scores with the identity strategy, of Linear and Conv2d layers",
        alone=("kronfluence>=1.0",),  # it asks for torchvision, which it does not use
    ),
    "alibi": Peer(
        title="alibi",
        package="alibi",
        needs=("alibi>=0.9.6", "click"),  # click is missing among what its dependency spacy asks for
        note="GradientSimilarity, one example at a time",
        batches=(1,),
    ),
}
TRAK = Peer("TRAK", "traker", ("traker>=0.3.2",), "projected gradients")  # which gives no such matrix
