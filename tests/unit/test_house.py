"""The rules of the house: setup.cfg lists what the tree holds, and the tree keeps to the layout."""

import ast
import configparser
import functools
import importlib.metadata
import pathlib
import re
import sys
from collections.abc import Iterator

import testtools

ROOT = pathlib.Path(__file__).parents[2]
MAX_FILE_LINES = 500
# Names of functions that say neither what is done nor what is returned.
PARTICIPLE = re.compile(
    r"\w+[^e]ed|begun|chosen|found|given|gone|heard|held|kept|known|left|made|met|seen|shown|taken|told|written"
)
QUESTIONS = {"may", "who", "whose", "why"}
FUNCTIONS_KEPT = {"shred": "it is a verb"}
"""Such names that stay, and why."""
# First words of docstrings that state something or name a thing instead of saying what to do.
NOT_VERBS = set(
    "a all an another any as at both by each every everything few for from how if in interface it its neither no none "
    "nor not nothing of on one or otherwise several some such text that the their them there these they this those "
    "time to two until what whatever when where whether which while who whose why with without".split()
)
# Other forms of verbs: writes, writing, noted.
NOT_BASE_FORM = re.compile(r"[a-z]+[^s]s|(?!bring)[a-z]+ing|[a-z]+[^e]ed")
MAX_SENTENCE_WORDS = 30
DESCRIBED = (
    *(
        "api",
        "benchmarks",
        "common",
        "conductor",
        "db",
        "devstack",
        "driver_kit",
        "drivers",
        "image",
        "rpcapi",
        "terminal",
        "tests",
    ),
)
"""Folders whose docstrings are checked."""
NOT_PACKAGED = {".pyc"}
CARRIED = {"api/console", "image/agent-extensions"}
"""Folders that a package carries as data: what they hold runs elsewhere, with what is there."""
# Dependencies that nothing imports by name: they are loaded by an entry point or by a URL.
LOADED_BY_NAME: set[str] = set()


@functools.cache
def setup_cfg() -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(ROOT / "setup.cfg")
    return parser


def listed(section: str, option: str) -> list[str]:
    """Return the lines of a list in setup.cfg, without comments."""
    lines = setup_cfg()[section][option].splitlines()
    return [line.strip() for line in lines if line.strip() and not line.strip().startswith("#")]


def folders() -> dict[str, pathlib.Path]:
    """Return top-level packages and their folders, from package_dir."""
    pairs = (line.split("=") for line in listed("options", "package_dir"))
    return {name.strip(): ROOT / folder.strip() for name, folder in pairs}


def files() -> Iterator[tuple[str, pathlib.Path]]:
    """Yield every file of the product with the package it belongs to."""
    for name, folder in folders().items():
        for path in sorted(folder.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts and path.suffix not in NOT_PACKAGED:
                carrier = find_carried(path)
                parts = (path.parent if carrier is None else carrier.parent).relative_to(folder).parts
                yield ".".join((name, *parts)), path


def find_carried(path: pathlib.Path) -> pathlib.Path | None:
    """Return the folder that is carried as data and holds a file."""
    return next((ROOT / name for name in CARRIED if path.is_relative_to(ROOT / name)), None)


def is_data(path: pathlib.Path) -> bool:
    """Return whether a file of a package is none of its modules."""
    return path.suffix != ".py" or find_carried(path) is not None


def modules() -> list[pathlib.Path]:
    return [path for _, path in files() if not is_data(path)]


def readable() -> list[pathlib.Path]:
    """Return the modules of the product, and those that measure it."""
    return [*modules(), *sorted((ROOT / "benchmarks").rglob("*.py"))]


def module_path(name: str) -> pathlib.Path:
    """Return the file of a module, by package_dir."""
    for package, folder in folders().items():
        if name == package or name.startswith(f"{package}."):
            path = folder.joinpath(*name.removeprefix(package).strip(".").split("."))
            return path.with_suffix(".py") if path.with_suffix(".py").exists() else path / "__init__.py"
    raise LookupError(f"{name} is in none of the folders of package_dir")


def imported(paths: list[pathlib.Path]) -> set[str]:
    """Return the dotted names that modules import from outside the product and the standard library."""
    names: set[str] = set()
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module)
    return {name for name in names if name.split(".")[0] not in {"ingot", "__future__", *sys.stdlib_module_names}}


def functions(path: pathlib.Path) -> Iterator[str]:
    """Yield the names of a module's functions and methods, without properties."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            if not any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
                yield node.name


def described() -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """Yield each function that has a docstring, with its place; properties are not functions."""
    for path in (path for folder in DESCRIBED for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text())) if "build" not in path.parts else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (text := ast.get_docstring(node)):
                if not any("property" in ast.unparse(decorator) for decorator in node.decorator_list):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node, text


def is_imperative(docstring: str) -> bool:
    """Return whether a docstring begins with one line whose first word is a verb in its base form, as far as seen."""
    if docstring.startswith(":"):  # only parameters and errors: the name says the rest
        return True
    first = re.match(r"[A-Z][a-z]+\b", docstring)
    word = first[0].lower() if first else "the"
    return word not in NOT_VERBS and not NOT_BASE_FORM.fullmatch(word) and "\n" not in docstring.split("\n\n")[0]


def says_nothing(name: str) -> bool:
    """Return whether a name is a bare participle or begins like a question."""
    first, _, more = name.strip("_").partition("_")
    return first in QUESTIONS or bool(not more and PARTICIPLE.fullmatch(first))


def folder_of(name: str) -> str:
    """Return the package that a module, or a name in a module, is in."""
    while not (path := module_path(name)).exists():
        name = name.rpartition(".")[0]
    return name if path.name == "__init__.py" else name.rpartition(".")[0]


def folder_arrows() -> Iterator[tuple[str, str]]:
    """Yield which folder of a top-level package imports which other folder of the same package."""
    for package, path in files():
        for node in () if is_data(path) else ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("ingot."):
                for alias in node.names:
                    folder = folder_of(f"{node.module}.{alias.name}")
                    if folder != package and folder.split(".")[:2] == package.split(".")[:2]:
                        yield package, folder


def normal(distribution: str) -> str:
    """Return a distribution's name as package indexes compare it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def required(section: str = "options", name: str = "install_requires") -> set[str]:
    return {normal(re.split(r"[\[<>=!~;]", line)[0]) for line in listed(section, name)}


def optional() -> set[str]:
    """Return what an interface needs that is not enabled by default, and what the tests of drivers need."""
    extras = ("ansible", "cinder", "driver-kit", "neutron", "otel")
    return set().union(*(required("options.extras_require", extra) for extra in extras))


@functools.cache
def distributions() -> dict[str, set[str]]:
    """Return the installed distributions of each top-level name."""
    found = importlib.metadata.packages_distributions()
    return {module: {normal(name) for name in names} for module, names in found.items()}


def providers(module: str) -> set[str]:
    """Return the installed distributions that a module's top-level name comes from."""
    return distributions().get(module.split(".")[0], set())


def described_in_guides() -> list[pathlib.Path]:
    """Return the modules of the packages that the guides show by their docstrings."""
    pages = "\n".join(page.read_text() for page in (ROOT / "doc" / "source").rglob("*.rst"))
    named = re.findall(r"^\.\. automodule:: (\S+)$", pages, re.MULTILINE)
    return [path for folder in {module_path(name).parent for name in named} for path in sorted(folder.rglob("*.py"))]


class PackagingTest(testtools.TestCase):
    def test_every_package_of_the_tree_is_listed(self) -> None:
        found = {package for package, path in files() if not is_data(path)}
        self.assertEqual(sorted(found), listed("options", "packages"), "[options] packages in setup.cfg")

    def test_every_package_has_an_init_file(self) -> None:
        without = [p for p in {path.parent for path in modules()} if not (p / "__init__.py").exists()]
        self.assertEqual([], without)

    def test_every_package_says_that_it_has_types(self) -> None:
        """A namespace package has no marker: each of its parts needs one (PEP 561)."""
        self.assertEqual([], [name for name, folder in folders().items() if not (folder / "py.typed").exists()])

    def test_every_data_file_is_packaged(self) -> None:
        patterns = listed("options.package_data", "*")
        packages = set(listed("options", "packages"))
        forgotten = [
            str(path.relative_to(ROOT))
            for package, path in files()
            if is_data(path) and not (package in packages and any(path.match(pattern) for pattern in patterns))
        ]
        self.assertEqual([], forgotten, "no pattern of [options.package_data] matches, or no package holds it")

    def test_every_package_data_pattern_matches_something(self) -> None:
        data = [path for _, path in files() if is_data(path)]
        idle = [p for p in listed("options.package_data", "*") if not any(path.match(p) for path in data)]
        self.assertEqual([], idle)

    def test_every_entry_point_names_something_that_exists(self) -> None:
        missing = []
        for group in setup_cfg()["options.entry_points"]:
            for line in listed("options.entry_points", group):
                module, _, attribute = line.partition("=")[2].strip().partition(":")
                path = module_path(module)
                defined = path.exists() and re.search(
                    rf"^(class|def) {attribute}\b|^{attribute}\b.* = |\bimport .*\b{attribute}\b",
                    path.read_text(),
                    re.MULTILINE,
                )
                if not defined:
                    missing.append(f"{group}: {line}")
        self.assertEqual([], missing)

    def test_entry_points_are_installed_as_listed(self) -> None:
        """An environment made before setup.cfg changed has old entry points: install again."""
        here = {
            (group, *(part.strip() for part in line.split("=")))
            for group in setup_cfg()["options.entry_points"]
            for line in listed("options.entry_points", group)
        }
        installed = {(e.group, e.name, e.value) for e in importlib.metadata.distribution("ingot").entry_points}
        self.assertEqual(here, installed)


class DependenciesTest(testtools.TestCase):
    def test_everything_imported_is_required(self) -> None:
        own = {name.split(".")[-1] for name in folders()}
        named = required() | optional()
        missing = sorted(m for m in imported(modules()) if m not in own and not providers(m) & named)
        self.assertEqual(
            [], missing, "no distribution in [options] install_requires, or the extras ansible and neutron, provides it"
        )

    def test_everything_required_is_imported(self) -> None:
        used = set().union(*(providers(module) for module in imported(modules())))
        self.assertEqual([], sorted((required() | optional()) - used - LOADED_BY_NAME))

    def test_tox_installs_what_the_guides_are_built_from(self) -> None:
        tox = configparser.ConfigParser(interpolation=None)
        tox.read(ROOT / "tox.ini")
        extras = [extra.strip() for extra in tox["testenv:docs"]["extras"].split(",")]
        named = required().union(*(required("options.extras_require", extra) for extra in extras))
        missing = sorted(m for m in imported(described_in_guides()) if not providers(m) & named)
        self.assertEqual([], missing, "[testenv:docs] extras in tox.ini")


class LayoutTest(testtools.TestCase):
    def test_every_module_says_what_it_is_for(self) -> None:
        silent = [str(p.relative_to(ROOT)) for p in readable() if not ast.get_docstring(ast.parse(p.read_text()))]
        self.assertEqual([], silent)

    def test_no_module_is_a_dumping_ground(self) -> None:
        vague = re.compile(r"(^|_)(utils?|helpers?|misc)($|_)")
        self.assertEqual([], [str(p.relative_to(ROOT)) for p in readable() if vague.search(p.stem)])

    def test_no_file_is_too_long(self) -> None:
        lengths = {str(p.relative_to(ROOT)): len(p.read_text().splitlines()) for p in readable()}
        self.assertEqual({}, {name: lines for name, lines in lengths.items() if lines > MAX_FILE_LINES})

    def test_folders_of_a_package_import_each_other_one_way_only(self) -> None:
        arrows = set(folder_arrows())
        self.assertEqual([], sorted((one, other) for one, other in arrows if one < other and (other, one) in arrows))

    def test_functions_are_called_by_verbs_and_nouns(self) -> None:
        found = {
            f"{path.relative_to(ROOT)}: {name}"
            for path in readable()
            for name in functions(path)
            if says_nothing(name) and name not in FUNCTIONS_KEPT
        }
        self.assertEqual([], sorted(found), "a verb says what a function does: check_access, build_schema, is_locked")

    def test_docstrings_of_functions_are_imperative(self) -> None:
        found = [
            f"{place}: {text.splitlines()[0]}"
            for place, node, text in described()
            if not node.name.startswith("test_") and not is_imperative(text)
        ]
        self.assertEqual([], found, "one line says what to do: Return ..., Check that ...; a test may state a fact")

    def test_sentences_of_docstrings_are_short(self) -> None:
        found = [
            f"{place}: {sentence}"
            for place, _, text in described()
            for sentence in re.split(r"(?<=[.!?])\s|\n\n", re.split(r"^:\w+", text, flags=re.MULTILINE)[0])
            if len(sentence.split()) >= MAX_SENTENCE_WORDS
        ]
        self.assertEqual([], found)

    def test_what_is_no_imperative_is_noticed(self) -> None:
        wrong = ("Returns a node.", "The node.", "Whether it runs.", "Return a\nnode.", "Noted.")
        self.assertEqual([], [text for text in wrong if is_imperative(text)])
        self.assertTrue(is_imperative("Process a node.\n\nIt has\ntwo lines."))

    def test_links_for_type_checkers_spell_every_folder(self) -> None:
        links = [ROOT / ".typing" / "ingot", ROOT / ".typing" / "devstack" / "ingot"]
        unreachable = [
            name
            for name, folder in folders().items()
            if not any((link / name.split(".")[1]).resolve() == folder for link in links)
        ]
        self.assertEqual([], unreachable)
