"""`devlet get`."""

import click

from devlet.cli.getting import Request, get
from devlet.cli.options import (
    KubectlCommand,
    all_namespaces_option,
    arguments,
    file_options,
    no_headers_option,
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
@click.option("-w", "--watch", is_flag=True, help="Watch for changes after listing the objects.")
@click.option("--watch-only", is_flag=True, help="Watch for changes without listing the objects first.")
@no_headers_option
@click.option("--show-labels", is_flag=True, help="Show the labels of objects as the last column.")
@click.option("--show-kind", is_flag=True, help="Show the kind of each object before its name.")
@click.option("--show-managed-fields", is_flag=True, help="Keep managedFields in JSON and YAML output.")
@click.option("--sort-by", metavar="PATH", default="", help="Sort the objects by this JSONPath, as in .metadata.name.")
@click.option("--ignore-not-found", is_flag=True, help="Exit with 0 if a named object does not exist.")
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
    """Print one or more objects.

    TYPE is a plural, singular or short name, several of them separated by commas, or "all". Add the group, or version
    and group, if a type is ambiguous, as in resourceclaims.v1beta1.resource.k8s.io."""
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
