"""`devlet cel`: evaluate selectors on devices, and check selectors."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import click

from devlet.cli.options import KubectlCommand, duration, file_options, output_option, target_options
from devlet.cli.output import check_format, document_text
from devlet.cli.session import Session
from devlet.errors import InvalidInput, NotFound

Function = Callable[..., Any]

_EVAL = """\b
Examples:
  devlet cel eval 'device.attributes["gpu.example.com"].model == "a100"'
  devlet cel eval --device gpu-0 --tree @selector.cel -f slices.yaml
  devlet cel eval --class gpu.example.com --kubeconfig ~/.kube/config
  devlet cel eval --kube-version 1.32,1.34,1.36 'semver("v1.2", true).major() == 1' -f slices.yaml
  devlet cel eval --cases cases.json
"""
_LINT = """\b
Examples:
  devlet cel lint -f classes.yaml -f slices.yaml
  devlet cel lint --kubeconfig ~/.kube/config --kube-version 1.34
  kubectl get deviceclasses,resourceclaims,resourceslices -A -o yaml | devlet cel lint -f -
"""


@click.group(invoke_without_command=True, epilog=_EVAL)
@click.pass_context
def command(context: click.Context) -> None:
    """Evaluate and check CEL device selectors."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def _environment_options(function: Function) -> Function:
    versions = click.option(
        "--kube-version",
        "versions",
        metavar="VERSION,…",
        default="",
        help="Follow these versions of Kubernetes, as in 1.34 or 1.32,1.34.",
    )
    gates = click.option(
        "--feature-gates", "gates", metavar="NAME=BOOL,…", default="", help="Set feature gates of Kubernetes."
    )
    stored = click.option(
        "--stored", is_flag=True, help="Compile as an expression that is already stored, not as a new one."
    )
    timeout = click.option(
        "--timeout", metavar="TIME", default="10s", callback=duration, help="Time limit for an expression; 0 for none."
    )
    return versions(gates(stored(timeout(function))))


@command.command("eval", cls=KubectlCommand, epilog=_EVAL)
@click.argument("expression", required=False)
@click.option(
    "--class", "class_name", metavar="NAME", default="", help="Evaluate the selectors of this device class instead."
)
@click.option(
    "--claim",
    "claim_name",
    metavar="NAME",
    default="",
    help="Evaluate the selectors of this claim or claim template instead.",
)
@click.option("--driver", metavar="NAME", default="", help="Use only devices of this driver.")
@click.option("--device", metavar="NAME", default="", help="Use only devices with this name.")
@click.option("--node", metavar="NAME", default="", help="Use only devices of this node.")
@click.option(
    "--tree/--no-tree", default=None, help="Show the value of each subexpression. [default: if there is one device]"
)
@click.option("--cases", metavar="FILE", default="", help="Evaluate the cases in a JSON file, or - for standard input.")
@_environment_options
@output_option("wide, json or yaml")
@file_options
@target_options
def evaluate(
    expression: str | None,
    class_name: str,
    claim_name: str,
    cases: str,
    driver: str,
    device: str,
    node: str,
    tree: bool | None,
    versions: str,
    gates: str,
    stored: bool,
    timeout: float,
    output: str,
    files: tuple[str, ...],
    recursive: bool,
    session: Session,
    namespace: str,
) -> int:
    """Evaluate an expression on devices.

    EXPRESSION is a CEL expression, @FILE to read it from a file, or - to read it from standard input. --class and
    --claim evaluate the selectors of an object instead. The exit code is 1 if an expression does not compile."""
    check_format(output, "wide", "json", "yaml")
    if sum(map(bool, (expression, class_name, claim_name, cases))) != 1:
        raise InvalidInput("give exactly one of EXPRESSION, --class NAME, --claim NAME and --cases FILE")
    if cases:
        return _cases(cases, timeout)
    from devlet.alloc.published import Published
    from devlet.cli import cel_input
    from devlet.cli.cel_eval import Evaluator
    from devlet.cli.cel_release import releases

    asked = releases(versions, gates, stored=stored)
    place = namespace or ("default" if files else session.namespace)
    expressions = [("", _text(expression))] if expression else []
    found = cel_input.of_files(files, place, recursive=recursive) if files else cel_input.of_server(session)
    expressions += _named(found, class_name, claim_name, place)
    everything = found.specimens()
    specimens = [
        specimen
        for specimen in everything
        if driver in ("", specimen.driver) and device in ("", specimen.device) and node in ("", specimen.node)
    ]
    if not specimens and (driver or device or node):
        raise NotFound("no device matches --driver, --device and --node: leave them out to use all devices")
    as_tree = len(specimens) == 1 if tree is None else tree
    published = Published(specimen.input for specimen in everything)
    evaluator = Evaluator(specimens, published, seconds=timeout, trace=as_tree)
    evaluated = [[evaluator.evaluate(text, release, title) for release in asked] for title, text in expressions]
    _show(evaluated, output, tree=as_tree)
    return int(any(each.program is None for group in evaluated for each in group))


def _cases(source: str, timeout: float) -> int:
    from devlet.cli.cel_cases import answers, read

    failures: list[str] = []

    def complain(text: str) -> None:
        failures.append(text)
        click.echo(f"error: {text}", err=True)

    content, origin = read(source)
    for answer in answers(content, origin, timeout, complain):
        click.echo(json.dumps(answer, ensure_ascii=False))
    return 1 if failures else 0


def _text(expression: str) -> str:
    """Return the expression itself, or the content of its file without the newline that editors add at the end."""
    if expression != "-" and not expression.startswith("@"):
        return expression
    from devlet.cli.cel_cases import read

    content, origin = read(expression.removeprefix("@"))
    try:
        return content.decode().removesuffix("\n")
    except UnicodeDecodeError as e:
        raise InvalidInput(f"{origin}: the expression is not UTF-8 text") from e


def _named(found: Any, class_name: str, claim_name: str, namespace: str) -> list[tuple[str, str]]:
    if not class_name and not claim_name:
        return []
    wanted = (
        {f"DeviceClass {class_name}"}
        if class_name
        else {f"{kind} {namespace}/{claim_name}" for kind in ("ResourceClaim", "ResourceClaimTemplate")}
    )
    selectors = [selector for selector in found.selectors() if selector.object in wanted]
    if not selectors:
        what = f'device class "{class_name}"' if class_name else f'claim or template "{claim_name}" in {namespace}'
        raise NotFound(f"no selectors found: {what} does not exist or has no selectors")
    return [(f"{selector.object}: {selector.path}", selector.expression) for selector in selectors]


def _show(evaluated: Sequence[Sequence[Any]], output: str, *, tree: bool) -> None:
    if output in ("json", "yaml"):
        from devlet.cli.cel_eval import document

        evaluations = [document(each, tree=tree) for group in evaluated for each in group]
        click.echo(document_text({"evaluations": evaluations}, output))
        return
    from devlet.cli.views import cel_result

    for number, group in enumerate(evaluated):
        if number:
            click.echo()
        if len(group) > 1:
            if group[0].title:
                click.echo(f"# {group[0].title}")
            lines = cel_result.side_by_side(group)
        else:
            lines = cel_result.lines(group[0], tree=tree, wide=output == "wide")
        click.echo("\n".join(lines))


@command.command("lint", cls=KubectlCommand, epilog=_LINT)
@_environment_options
@output_option("json or yaml")
@file_options
@target_options
def check(
    versions: str,
    gates: str,
    stored: bool,
    timeout: float,
    output: str,
    files: tuple[str, ...],
    recursive: bool,
    session: Session,
    namespace: str,
) -> int:
    """Check the selectors of device classes, claims and claim templates.

    If there are slices, the selectors are also checked against the devices that they publish. The exit code is 1 if
    there are errors."""
    check_format(output, "json", "yaml")
    from devlet.alloc.lint import Severity
    from devlet.cli import cel_input
    from devlet.cli.cel_lint import Linter
    from devlet.cli.cel_release import releases

    place = namespace or ("default" if files else session.namespace)
    found = cel_input.of_files(files, place, recursive=recursive) if files else cel_input.of_server(session)
    located = []
    for release in releases(versions, gates, stored=stored):
        linter = Linter(found, release, timeout)
        located += [(release, each) for each in linter.findings()]
    if output:
        documents = [each.document() | {"kubeVersion": release.name} for release, each in located]
        findings = {"findings": documents, "selectors": linter.count, "devices": linter.devices}
        click.echo(document_text(findings, output))
    else:
        several = "," in versions
        for release, each in located:
            click.echo(each.line + (f" [{release.name}]" if several else ""))
        summary = f"{_number(linter.count, 'selector')}, {_number(linter.devices, 'device')}"
        click.echo(f"{summary}: {_number(len(located), 'finding')}", err=True)
    return int(any(each.finding.severity is Severity.ERROR for _, each in located))


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
