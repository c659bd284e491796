"""A new project for a driver: its names, and its files from the templates beside this module.

One name makes all others: `led` or `led.vendor.com` is the driver led.vendor.com or the resource vendor.com/led, in the
package led_driver, so that it can never hide another module. The files appear all at once or not at all.
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

# The registration socket of an instance, `/var/lib/kubelet/plugins_registry/NAME-UID-reg.sock`, has 80 more, and the
# kernel takes 107.
LONGEST_DRIVER = 27

_EXPECTED = "expected a lower case letter, and then letters, digits and dashes"


class Kind(StrEnum):
    DRA = "dra"
    DEVICE_PLUGIN = "device-plugin"


@dataclass(frozen=True, slots=True)
class Names:
    """All that a project is called."""

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
        """What templates say in braces."""
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
    """InvalidInput if it is none for such a project."""
    if "/" in name or "\\" in name or name.startswith((".", "~")):
        raise InvalidInput(f"{name!r} is a path: expected a name such as led or led.vendor.com; --directory says where")
    label, _, domain = name.partition(".")
    found = Names(label, domain or DOMAIN)
    if not re.fullmatch("[a-z]([a-z0-9-]*[a-z0-9])?", label):
        raise InvalidInput(f"{name!r} cannot be the name of a driver: {_EXPECTED}")
    if problems := names.driver_name(found.driver):
        raise InvalidInput(f"{name!r} cannot be the name of a driver: {problems[0]}")
    if kind is Kind.DRA and len(found.driver) > LONGEST_DRIVER:
        why = f"the paths of its sockets would be too long: expected at most {LONGEST_DRIVER} characters"
        raise InvalidInput(f"{found.driver!r} cannot be the name of a driver: {why}")
    if kind is Kind.DEVICE_PLUGIN and names.extended_resource_name(found.resource):
        raise InvalidInput(f"{found.resource!r} cannot be a resource of a device plugin")
    return found


def create(directory: Path, kind: Kind, project: Names) -> list[PurePosixPath]:
    """The files, in a directory that is not there yet. InvalidInput if it is, or cannot be made."""
    if directory.exists() or directory.is_symlink():
        raise InvalidInput(f"{directory} is there already, and stays as it is: choose another with --directory")
    files = dict(_rendered(kind, project))
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".devlet-", dir=directory.parent) as place:
            _write(Path(place) / "new", files)
            (Path(place) / "new").rename(directory)
    except OSError as e:
        raise InvalidInput(f"{directory} cannot be made: {e.strerror or e}") from e
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
    """A name in braces that has no value is a mistake in the template: KeyError."""
    return re.sub(r"\{\{(\w+)\}\}", lambda match: values[match[1]], text)
