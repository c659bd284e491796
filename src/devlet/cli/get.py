"""`devlet get`."""

import click

from devlet.cli.getting import Request, get
from devlet.cli.options import (
    KubectlCommand,
    all_namespaces_option,
    arguments,
    file_options,
    output_option,
    selector_options,
    target_options,
)
from devlet.cli.output import FORMATS
from devlet.cli.session import Session

_EXAMPLES = """\b
Examples:
  devlet get pods
  devlet get resourceclaims -A -o wide
  devlet get pod/train -o jsonpath='{.spec.nodeName}'
  devlet get pods -w
  devlet get devices
  devlet get holders -A
  devlet get claims -A
  devlet get drivers,slices
"""


@click.command(cls=KubectlCommand, epilog=_EXAMPLES)
@arguments
@output_option(FORMATS)
@selector_options
@all_namespaces_option
@file_options
@click.option("-w", "--watch", is_flag=True, help="Then follow what changes.")
@click.option("--watch-only", is_flag=True, help="Follow what changes, without what is there now.")
@click.option("--no-headers", is_flag=True, help="Tables without titles.")
@click.option("--show-labels", is_flag=True, help="Tables with labels.")
@click.option("--show-kind", is_flag=True, help="Names with their kind.")
@click.option("--show-managed-fields", is_flag=True, help="JSON and YAML with managedFields.")
@click.option("--sort-by", metavar="PATH", default="", help="Sorted by this JSONPath of each object.")
@click.option("--ignore-not-found", is_flag=True, help="Objects that do not exist are no error.")
@target_options
def command(
    arguments: tuple[str, ...],
    session: Session,
    namespace: str,
    output: str,
    selector: str,
    field_selector: str,
    all_namespaces: bool,
    files: tuple[str, ...],
    recursive: bool,
    watch: bool,
    watch_only: bool,
    no_headers: bool,
    show_labels: bool,
    show_kind: bool,
    show_managed_fields: bool,
    sort_by: str,
    ignore_not_found: bool,
) -> None:
    """Print objects.

    TYPE is a plural, singular or short name, several with commas, or "all"; with its group where it is ambiguous, as in
    resourceclaims.v1beta1.resource.k8s.io."""
    request = Request(
        arguments=arguments,
        output=output,
        selector=selector,
        field_selector=field_selector,
        all_namespaces=all_namespaces,
        files=files,
        recursive=recursive,
        watch=watch,
        watch_only=watch_only,
        no_headers=no_headers,
        show_labels=show_labels,
        show_kind=show_kind,
        show_managed_fields=show_managed_fields,
        sort_by=sort_by,
        ignore_not_found=ignore_not_found,
    )
    get(session, namespace, request)
