"""The pages cannot fall behind the programs: what they name exists, and what exists they name."""

import asyncio
import json
import re
import runpy
import shlex
import shutil
import tomllib
from pathlib import Path

import click
import numpy as np
import pytest

from experiments.processes import program
from tests.conformance.check_picker import check_picker, make_view
from vodserver.seed import Seed, SeedSettings
from vodserver.store import add_film, create_store, open_store
from vodserver.torrent import compose_torrent

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").glob("*.md"))]
GENERATE = runpy.run_path(str(ROOT / "docs/generate.py"))
TABLES = runpy.run_path(str(ROOT / "docs/tables.py"))
PROGRAMS = GENERATE["programs"]()
SETTINGS = [
    (each, setting)
    for package in GENERATE["PACKAGES"]
    for each in GENERATE["settings_classes"](package)
    for setting in each.settings
]

pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)


def page(name):
    return (ROOT / "docs" / name).read_text("utf-8")


# -- generated pages -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", GENERATE["PAGES"])
def test_a_generated_page_is_what_the_code_says(name, monkeypatch):
    monkeypatch.setenv("COLUMNS", "47")  # the page must not depend on anyone's terminal
    current = GENERATE["PAGES"][name]()
    assert (ROOT / name).read_text("utf-8") == current, "run: python docs/generate.py"


@pytest.mark.parametrize("name", TABLES["PAGES"])
def test_a_table_of_measurements_is_what_the_evidence_says(name):
    current = (ROOT / name).read_text("utf-8")
    assert "<!-- table " in current
    assert TABLES["filled"](current) == current, "run: python docs/tables.py"


def test_every_table_of_measurements_is_on_a_page():
    text = "".join((ROOT / name).read_text("utf-8") for name in TABLES["PAGES"])
    assert set(re.findall(r"<!-- table (\S+) -->", text)) == set(TABLES["TABLES"])


def test_every_package_with_settings_is_on_the_page():
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    assert set(GENERATE["PACKAGES"]) == set(scripts["tool"]["importlinter"]["root_packages"])


@pytest.mark.parametrize(
    "setting",
    [pytest.param(field, id=f"{each.name}.{field.name}") for each, field in SETTINGS],
)
def test_a_setting_says_what_it_means_and_its_unit(setting):
    """A time, size or rate has its unit in its name; what its docstring calls one, is one."""
    assert setting.meaning, "a setting needs an attribute docstring"
    assert setting.meaning.endswith(".")
    if "float" in setting.kind:
        assert setting.unit, f"{setting.name}: a unit must end the name ({list(GENERATE['UNITS'])})"
    elif not setting.unit:
        called = re.search(r"\b(bytes|bits|seconds|milliseconds|minutes)\b", setting.meaning)
        assert "int" not in setting.kind or called is None


# -- help texts and commands -----------------------------------------------------------------------


def leaf(words):
    """The command that a command line names, its arguments read by the command itself."""
    name, *args = words
    command, context = PROGRAMS[name], None
    while True:
        context = command.make_context(name, args, parent=context)
        if not isinstance(command, click.Group):
            return context
        name, command, args = command.resolve_command(
            context, [*context._protected_args, *context.args]
        )


def check_command_line(line):
    """Fail where a program would refuse this command line."""
    words = shlex.split(line, comments=True)
    for at, word in enumerate(words):
        if word in {"|", ">", "&&", "&", ";"}:
            words = words[:at]
            break
    try:
        leaf(words)
    except click.exceptions.Exit:
        return  # --help, --version
    except click.BadParameter as error:
        if "does not exist" not in error.message:  # the reader's own file
            raise AssertionError(f"'{line}': {error.format_message()}") from error
    except click.UsageError as error:
        raise AssertionError(f"'{line}': {error.format_message()}") from error


HELP_TEXTS = [
    (path, text)
    for name, group in PROGRAMS.items()
    for path, text in GENERATE["help_texts"](name, group)
]


@pytest.mark.parametrize(("path", "text"), HELP_TEXTS, ids=[path for path, _ in HELP_TEXTS])
def test_every_help_text_has_an_example_that_works(path, text):
    lines = [line.strip() for line in text.splitlines()]
    assert "\\b" not in text, "the docstring has a backslash and a b where a backspace belongs"
    assert not [line for line in lines[1:] if line.endswith("...")], "a first sentence is too long"
    assert "Example:" in lines, "an example must stand as it is written, on lines of its own"
    examples = lines[lines.index("Example:") + 1 :]
    examples = examples[: examples.index("")]
    assert examples
    for example in examples:
        check_command_line(example)
    own = [example for example in examples if example.startswith(path)]
    assert own, f"no example of {path} itself"


def command_lines(text):
    """Lines of code blocks that begin with one of our programs; continued lines joined."""
    joined = re.sub(r"\\\n\s*", " ", text)
    for line in joined.splitlines():
        words = line.removeprefix("    ").removeprefix("$ ").strip()
        if words.split(" ")[0].rpartition("/")[2] in PROGRAMS and not words.endswith(":"):
            yield words[words.index(words.split(" ")[0].rpartition("/")[2]) :]


def code_blocks(text):
    """The text of fenced and of indented blocks."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
    shells = {"", "console", "sh", "shell", "bash"}
    fenced = [block for language, block in fence.findall(text) if language in shells]
    return "\n".join([*fenced, *re.findall(r"^    .*$", fence.sub("", text), re.MULTILINE)])


@pages
def test_commands_in_a_page_are_commands(page):
    if page.name == "cli.md":
        return  # written from the programs, and checked above
    for line in command_lines(code_blocks(page.read_text("utf-8"))):
        check_command_line(line)


@pages
def test_commands_and_options_in_a_sentence_exist(page):
    """In prose a command line may be cut short: then at least its parts exist."""
    for line in re.findall(r"`([^`\n]+)`", page.read_text("utf-8")):
        name, *words = line.split()
        if name not in PROGRAMS:
            continue
        command = PROGRAMS[name]
        while words and isinstance(command, click.Group) and not words[0].startswith("-"):
            word = words.pop(0)
            assert word in command.commands, line
            command = command.commands[word]
        known = {o for param in command.params for o in (*param.opts, *param.secondary_opts)}
        asked = {option for word in words if word.startswith("--") for option in word.split("/")}
        assert asked <= {*known, "--help", "--version"}, line


@pytest.mark.parametrize("line", ["toast watch", "toast whistle", "vodserver list --jsn"])
def test_a_wrong_command_line_would_be_noticed(line):
    with pytest.raises(AssertionError, match=line):
        check_command_line(line)


@pages
def test_what_make_is_asked_for_can_be_made(page):
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    asked = re.findall(r"(?:`|^ {4}|^\$ )make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE)
    assert set(asked) <= set(targets)


# -- links and paths -------------------------------------------------------------------------------


def anchors(text):
    """What headings are called in links, as GitHub makes them."""
    for heading in re.findall(r"^#+ (.+)$", text, re.MULTILINE):
        yield re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pages
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text("utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        found = page.parent / path if path else page
        assert found.exists(), target
        if anchor:
            assert anchor in anchors(found.read_text("utf-8")), target


@pages
def test_files_that_a_page_names_are_there(page):
    names = re.findall(r"`((?:[\w.-]+/)+[\w.-]*\.(?:py|md|toml|txt))`", page.read_text("utf-8"))
    assert [name for name in names if not (ROOT / name).exists()] == []


TEXTS = [
    file
    for pattern in ("*.md", "*.toml", "Makefile", "*/**/*.md", "*/**/*.py")
    for file in ROOT.glob(pattern)
    if not {"run", "build", ".venv"} & set(file.relative_to(ROOT).parts)
]


def test_nothing_names_a_place_on_one_machine_only():
    home = re.compile(r"(?<![\w.~])/(?:work|home|Users)/\w")
    named = [str(file) for file in TEXTS if home.search(file.read_text("utf-8"))]
    assert named == []


@pages
def test_pages_speak_of_the_project_and_not_of_work_on_it(page):
    plans = r"\b(?:TODO|FIXME|TBD|sprint|milestone|backlog|assignee|roadmap)\b|(?<![&\w])#\d+\b"
    assert re.findall(plans, page.read_text("utf-8"), re.IGNORECASE) == []


# -- what programs tell ----------------------------------------------------------------------------


async def test_the_seeds_counters_are_in_its_servers_page():
    settings = SeedSettings(host="127.0.0.1", port=0, upload=None, connections=1, trackers=())
    for name in await Seed(None, settings).statistics():
        assert f"`{name}`" in page("vodserver.md")


def described_events():
    """The fields of each event, as docs/viewer.md has them."""
    events = page("viewer.md").split("## Events")[1].split("\n## ")[0]
    sections = re.findall(r"^### `(\w+)`\n(.*?)(?=^### |\Z)", events, re.MULTILINE | re.DOTALL)
    return {event: re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) for event, text in sections}


@pytest.fixture
def watched(tmp_path, small_film):
    """A .torrent with a time map, and a folder in which its film is complete already."""
    create_store(tmp_path / "store", [tmp_path / "disk"], allocation="naive")
    with open_store(tmp_path / "store") as store:
        title = add_film(store, small_film)
    torrent = tmp_path / "small.torrent"
    # Nobody listens on port 9; whoever has every piece asks for none.
    torrent.write_bytes(compose_torrent(title, trackers=[], content_url="http://127.0.0.1:9/film"))
    folder = tmp_path / "films"
    folder.mkdir()
    shutil.copyfile(small_film, folder / small_film.name)
    return torrent, folder


@pytest.mark.slow
async def test_the_viewers_events_are_described_field_by_field(watched):
    """Both ways: what `toast watch --json` prints is described, and nothing else is."""
    torrent, folder = watched
    options = ["--folder", folder, "--listen", "127.0.0.1", "--start", "4.5", "--gateway", "--json"]
    child = await asyncio.create_subprocess_exec(
        program("toast"), "watch", torrent, *options, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(30):
        output, _ = await child.communicate()

    assert child.returncode == 0
    told = {}
    for line in output.splitlines():
        event = json.loads(line)
        told.setdefault(event.pop("event"), list(event))
    assert told == described_events()


# -- the design page -------------------------------------------------------------------------------


def test_the_design_names_every_contract_and_every_package():
    design = page("design.md")
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    assert [c["name"] for c in linter["contracts"] if f"`{c['name']}`" not in design] == []
    tree = design.split("## Rooms\n\n```\n")[1].split("```")[0]
    for top in linter["root_packages"]:
        for init in (ROOT / top).rglob("__init__.py"):
            depth = len(init.relative_to(ROOT).parts) - 2
            name = re.escape(init.parent.name)
            assert re.search(rf"^{'  ' * depth}{name}/ ", tree, re.MULTILINE), init


def test_words_are_explained_once():
    words = re.findall(r"^\| \*\*([^*]+)\*\* \|", page("design.md"), re.MULTILINE)
    assert len(words) > 15
    assert len(set(words)) == len(words)
    assert words == sorted(words, key=str.lower)


# -- contributing ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_picker_for_contributors_conforms():
    """The example in CONTRIBUTING.md is run as it stands there."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (code,) = re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    room = {}
    exec(code, room)
    check_picker(room["LastFirst"], shrink=False)
    picture = make_view("0103020", playhead=1)
    assert room["LastFirst"]().rank(picture, np.random.default_rng(0)).tolist() == [5, 3, 1]
