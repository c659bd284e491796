"""`devlet checkpoint`: show, verify, convert and repair the files in which a kubelet or devlet remembers devices."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import click

from devlet.cli.checkpoint_formats import FORMATS, Format, recognised
from devlet.cli.options import KubectlCommand
from devlet.errors import InUse, InvalidInput, StateCorrupt
from devlet.state import device_checkpoint

Function = Callable[..., Any]

_KUBELET = f"/var/lib/kubelet/device-plugins/{device_checkpoint.FILE_NAME}"
_KUBELET_CLAIMS = "/var/lib/kubelet/dra_manager_state"
_PLACES = 2  # directories above a checkpoint that may be a root


def _example(*lines: str) -> str:
    return "\n".join(
        ["\b", "Examples:" if len(lines) > 1 else "Example:", *(f"  devlet checkpoint {x}" for x in lines)]
    )


@click.group(invoke_without_command=True, epilog=_example(f"show {_KUBELET}", f"verify {_KUBELET_CLAIMS}"))
@click.pass_context
def command(context: click.Context) -> None:
    """Show, verify, convert and repair the checkpoints of a kubelet or devlet.

    Every version of device, claim and device health checkpoints can be read. Neither a cluster nor a running node is
    needed. The kind of checkpoint is recognized by its content."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


class _Loaded(NamedTuple):
    path: Path
    blob: bytes
    format: Format

    def check(self) -> "_Loaded":
        verdict = self.format.verify(self.blob)
        if not verdict.valid:
            next_step = f"to save what can be read, run: devlet checkpoint repair {self.path}"
            raise StateCorrupt(f"{self.path}: {self.format.name}: {verdict.text}; {next_step}")
        return self


def _file_options(function: Function) -> Function:
    file = click.argument("file", type=click.Path(path_type=Path))
    format = click.option(
        "--format",
        "name",
        type=click.Choice(list(FORMATS)),
        help="Read FILE as this kind of checkpoint. [default: recognized by its content]",
    )
    return file(format(function))


def _load(file: Path, name: str | None) -> _Loaded:
    from devlet.state.checkpoint_file import read

    if file.is_dir():
        inside = [name for name in FORMATS if (file / name).is_file()]
        which = f": {' or '.join(str(file / name) for name in inside)}" if inside else ""
        raise InvalidInput(f"{file} is a directory: name a checkpoint in it{which}")
    try:
        blob = read(file)
    except OSError as e:
        raise InvalidInput(f"{file} cannot be read: {e.strerror or e}") from e
    try:
        return _Loaded(file, blob, recognised(blob, name, file.name))
    except (InvalidInput, StateCorrupt) as e:
        raise type(e)(f"{file}: {e}") from e


@command.command(cls=KubectlCommand, epilog=_example(f"show {_KUBELET}", f"show -o json {_KUBELET}"))
@_file_options
@click.option("-o", "--output", type=click.Choice(["wide", "json", "yaml"]), help="Output format. [default: a table]")
def show(file: Path, name: str | None, output: str | None) -> None:
    """Print the content of a checkpoint.

    A device checkpoint shows which container holds which devices, a claim checkpoint the devices prepared for each
    claim, and a health checkpoint the health of each device. A file whose checksum is wrong is printed with a
    warning."""
    loaded = _load(file, name)
    verdict = loaded.format.verify(loaded.blob)
    if not verdict.legible:
        loaded.check()
    if not verdict.valid:
        click.echo(f"warning: {file}: {verdict.text}", err=True)
    if output in ("json", "yaml"):
        from devlet.cli.output import document_text

        click.echo(document_text(loaded.format.document(loaded.blob), output))
    else:
        click.echo("\n".join(loaded.format.table(loaded.blob, wide=output == "wide")))


@command.command(cls=KubectlCommand, epilog=_example(f"verify {_KUBELET}"))
@_file_options
def verify(file: Path, name: str | None) -> None:
    """Verify that a checkpoint is intact, or report what is wrong with it.

    The output names the format and the version. The exit code is 1 if the file is damaged."""
    loaded = _load(file, name).check()
    verdict = loaded.format.verify(loaded.blob)
    click.echo(f"{file}: {loaded.format.name} {verdict.text}")
    for warning in verdict.warnings:
        click.echo(f"warning: {warning}", err=True)


@command.command(cls=KubectlCommand, epilog=_example("convert old_checkpoint --output kubelet_internal_checkpoint"))
@_file_options
@click.option("--output", metavar="FILE", type=click.Path(path_type=Path), help="Write to FILE. [default: stdout]")
@click.option("--force", is_flag=True, help="Overwrite the file given with --output.")
def convert(file: Path, name: str | None, output: Path | None, force: bool) -> None:
    """Convert a checkpoint of any version to the current version.

    Versions of kubelet_internal_checkpoint before v2 did not record NUMA nodes, so the converted devices have none.
    Versions of dra_manager_state before 1.31 did not record pools, devices and requests: each driver gets one unnamed
    device that serves all requests. In dra_health_state, fields that a kubelet before 1.36 did not write get their
    defaults."""
    loaded = _load(file, name).check()
    content = loaded.format.convert(loaded.blob)
    if output is None:
        click.echo(content, nl=False)
        return
    _write(output, content, replace=force)
    click.echo(f"{output}: {loaded.format.name} {loaded.format.verify(content).text}")


@command.command(cls=KubectlCommand, epilog=_example(f"repair {_KUBELET}"))
@_file_options
@click.option(
    "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write to FILE and leave the damaged file alone."
)
@click.option(
    "--force", is_flag=True, help="Repair even if a devlet uses the file; overwrite the file given with --output."
)
def repair(file: Path, name: str | None, output: Path | None, force: bool) -> None:
    """Save what can be read from a damaged checkpoint.

    Stop the node first. The damaged file is kept beside the new one. A device whose entry is lost counts as free, so
    check the reported losses before you start a node with the repaired file."""
    loaded = _load(file, name)
    if loaded.format.verify(loaded.blob).valid:
        click.echo(f"{file}: {loaded.format.name} is valid: there is nothing to repair")
        return
    with _unused(output or file, force):
        loaded = _load(file, name)  # again, now that no devlet can change it
        rescue = loaded.format.rescue(loaded.blob)
        if not rescue.content:
            raise StateCorrupt(f"{file}: nothing in it can be read: move it away, and the node starts without it")
        kept = None if output else _copy(loaded)
        _write(output or file, rescue.content, replace=force or output is None)
    click.echo(f"{output or file}: written with {rescue.kept}")
    for lost in rescue.lost:
        click.echo(f"lost: {lost}")
    if kept:
        click.echo(f"kept: the damaged file, as {kept}")


@contextmanager
def _unused(path: Path, force: bool) -> Iterator[None]:
    """Keep any devlet from starting on the root above the file, if there is one."""
    from devlet.daemon.root import LOCK_FILE
    from devlet.kit import file_lock

    locks = [directory / LOCK_FILE for directory in path.absolute().parents[:_PLACES]]
    found = next((lock for lock in locks if lock.is_file()), None)
    if found is None or force:
        yield
        return
    try:
        with file_lock.held(found):
            yield
    except InUse as e:
        raise InUse(f"{e}: stop it first, or use --force, knowing that it overwrites {path} at its next change") from e


def _copy(loaded: _Loaded) -> Path:
    from devlet.state.checkpoint_file import free_name

    try:
        aside = free_name(loaded.path, datetime.now(UTC))
    except OSError as e:
        raise InvalidInput(f"cannot copy the damaged file to a name beside {loaded.path}: {e.strerror or e}") from e
    _write(aside, loaded.blob, replace=True)
    return aside


def _write(path: Path, content: bytes, *, replace: bool) -> None:
    from devlet.kit import atomic_file

    with ExitStack() as on_error:
        try:
            if not replace:
                path.touch(mode=0o600, exist_ok=False)
                on_error.callback(path.unlink, missing_ok=True)
            atomic_file.write(path, content)
        except FileExistsError as e:
            raise InvalidInput(f"{path} already exists: choose another name, or overwrite it with --force") from e
        except OSError as e:
            raise InvalidInput(f"{path} cannot be written: {e.strerror or e}") from e
        on_error.pop_all()
