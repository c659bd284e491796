"""A new project for a driver: its names, and its files from the templates beside this module.

All names derive from one: `led` or `led.vendor.com` gives the driver led.vendor.com or the resource vendor.com/led, in
the package led_driver, whose suffix keeps it from shadowing another module. The files are created all at once or not
at all.
"""

import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path, PurePosixPath

from devlet.errors import InvalidInput
from devlet.objects import names
from devlet.objects.release import DEVLET

__all__ = ["Kind", "Names", "create", "names_of"]

TEMPLATES = "driver_templates"
SUFFIX = ".tmpl"
PACKAGE = "PACKAGE"  # in paths of templates
DOMAIN = "example.com"

# The path of an instance's registration socket, `/var/lib/kubelet/plugins_registry/NAME-UID-reg.sock`, is 80 characters
# longer than the name, and the kernel accepts 107.
LONGEST_DRIVER = 27

_EXPECTED = "must start with a lowercase letter and consist of lowercase letters, digits and dashes"


class Kind(StrEnum):
    DRA = "dra"
    DEVICE_PLUGIN = "device-plugin"


@dataclass(frozen=True, slots=True)
class Names:
    """The names in a project, all derived from its label and domain."""

    label: str
    domain: str

    @property
    def driver(self) -> str:
        return f"{self.label}.{self.domain}"

    @property
    def resource(self) -> str:
        return f"{self.domain}/{self.label}"

    @property
    def distribution(self) -> str:
        return f"{self.label.removesuffix('-driver')}-driver"

    @property
    def package(self) -> str:
        return self.distribution.replace("-", "_")

    def values(self) -> dict[str, str]:
        """Return the values for the names in braces in templates."""
        return {
            "label": self.label,
            "driver": self.driver,
            "resource": self.resource,
            "distribution": self.distribution,
            "package": self.package,
            "class": "".join(part.capitalize() for part in self.label.split("-")),
            "variable": self.label.upper().replace("-", "_"),
            "about": f"Gives {self.label} devices to pods",
            "devlet": DEVLET,
        }


def names_of(name: str, kind: Kind) -> Names:
    """Derive the names from `name`. Raises InvalidInput if a project of this kind cannot have it."""
    if "/" in name or "\\" in name or name.startswith((".", "~")):
        raise InvalidInput(f"{name!r} is a path, not a name such as led or led.vendor.com: give paths with --directory")
    label, _, domain = name.partition(".")
    found = Names(label, domain or DOMAIN)
    if not re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", label):
        raise InvalidInput(f"invalid driver name {name!r}: {_EXPECTED}")
    if problems := names.driver_name(found.driver):
        raise InvalidInput(f"invalid driver name {name!r}: {problems[0]}")
    if kind is Kind.DRA and len(found.driver) > LONGEST_DRIVER:
        why = f"must be no more than {LONGEST_DRIVER} characters, or the paths of its sockets become too long"
        raise InvalidInput(f"invalid driver name {found.driver!r}: {why}")
    if kind is Kind.DEVICE_PLUGIN and names.extended_resource_name(found.resource):
        raise InvalidInput(f"invalid resource name {found.resource!r}: a device plugin cannot serve it")
    return found


def create(directory: Path, kind: Kind, project: Names) -> list[PurePosixPath]:
    """Create the directory and return its files. Raises InvalidInput if it exists or cannot be created."""
    if directory.exists() or directory.is_symlink():
        raise InvalidInput(f"{directory} already exists: choose another directory with --directory")
    files = dict(_rendered(kind, project))
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".devlet-", dir=directory.parent) as place:
            _write(Path(place) / "new", files)
            (Path(place) / "new").rename(directory)
    except OSError as e:
        raise InvalidInput(f"cannot create {directory}: {e.strerror or e}") from e
    return sorted(files)


def _write(directory: Path, files: Mapping[PurePosixPath, str]) -> None:
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)


def _rendered(kind: Kind, project: Names) -> Iterator[tuple[PurePosixPath, str]]:
    values = project.values()
    for folder in ("both", kind):
        root = resources.files(__package__) / TEMPLATES / folder
        for path, text in _templates(root, PurePosixPath()):
            yield PurePosixPath(str(path).replace(PACKAGE, project.package)), _filled(text, values)


def _templates(folder: Traversable, path: PurePosixPath) -> Iterator[tuple[PurePosixPath, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _templates(entry, path / entry.name)
        elif entry.name.endswith(SUFFIX):
            yield path / entry.name.removesuffix(SUFFIX), entry.read_text()


def _filled(text: str, values: Mapping[str, str]) -> str:
    """Replace the names in braces by their values. Raises KeyError for a name without a value."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)
