"""Data is never run as code, text never reaches a shell, and only downloads use the network: our syntax says so."""

import ast
from collections.abc import Iterator

from test_quality import imports

from mdpu.pipeline.files import PACKAGE, REPOSITORY

SOURCES = [*PACKAGE.rglob("*.py"), *(REPOSITORY / "workflow").rglob("*.py"), REPOSITORY / "run"]
TREES = {str(path.relative_to(REPOSITORY)): ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES}
NETWORK = {"aiohttp", "ftplib", "http.client", "http.server", "httpx", "requests", "socket", "urllib.request"}
UNPICKLERS = {"cloudpickle", "dill", "joblib", "marshal", "pickle", "shelve"}
SHELLS = {"os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput", "eval", "exec"}
UNPACKERS = {"extract", "extractall", "unpack_archive"}


def used(tree: ast.AST) -> set[str]:
    """Return the modules that a file imports, those among them that a name was imported from."""
    return {name for one in imports(tree) for name in (one, one.rpartition(".")[0])}


def calls(tree: ast.AST) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield what a file calls, and with which named arguments."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), {word.arg: ast.unparse(word.value) for word in node.keywords if word.arg}


def test_only_downloads_use_the_network():
    assert [name for name, tree in TREES.items() if used(tree) & NETWORK] == ["mdpu/pipeline/data/download.py"]


def test_nothing_is_unpickled():
    assert not [name for name, tree in TREES.items() if used(tree) & UNPICKLERS]
    loads = [(called, words) for tree in TREES.values() for called, words in calls(tree)]
    assert {words.get("weights_only") for called, words in loads if called == "torch.load"} == {"True"}
    assert {words.get("allow_pickle", "False") for called, words in loads if called == "np.load"} == {"False"}
    assert not [called for called, _ in loads if called.endswith(("read_pickle", "yaml.unsafe_load", "yaml.full_load"))]


def test_no_text_reaches_a_shell_or_is_run_as_code():
    for name, tree in TREES.items():
        for called, words in calls(tree):
            assert called not in SHELLS, name
            assert words.get("shell", "False") == "False", name


def test_no_archive_says_where_its_files_go():
    """CIFAR-10's, which torchvision unpacks, has a pinned checksum."""
    assert not [name for name, tree in TREES.items() for called, _ in calls(tree) if called.split(".")[-1] in UNPACKERS]
