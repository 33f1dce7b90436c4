"""Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017): pieces of clothing, in files and numbers like MNIST's."""

from precedents.zoo.dataset import Dataset
from precedents.zoo.datasets._files import Folder, PublishedFile, files
from precedents.zoo.datasets.mnist import from_idx

HOME = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/"
FILES = tuple(
    PublishedFile(f"{name}.gz", f"sha256:{digest}", (f"{HOME}{name}.gz",), "FashionMNIST/raw")
    for name, digest in {
        "train-images-idx3-ubyte": "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
        "train-labels-idx1-ubyte": "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
        "t10k-images-idx3-ubyte": "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
        "t10k-labels-idx1-ubyte": "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
    }.items()
)
CLASSES = (
    "T-shirt/top",
    "trouser",
    "pullover",
    "dress",
    "coat",
    "sandal",
    "shirt",
    "sneaker",
    "bag",
    "ankle boot",
)


def fashion_mnist(folder: Folder = None) -> Dataset:
    """As MNIST: the last twelfth is the development set; a tenth of the others is trained on."""
    return from_idx("fashion_mnist", CLASSES, files("fashion_mnist", FILES, folder))
