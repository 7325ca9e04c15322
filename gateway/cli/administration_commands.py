"""The client commands about the data directory of a gateway that runs."""

from __future__ import annotations

from gateway.cli.command import Argument, Command, command

DRY_RUN = Argument("dry_run", "true: report what would change, change nothing", "json")

ADMINISTRATION: tuple[Command, ...] = (
    command(
        "admin backup", "POST /v1/admin/backup", "copy the data directory into a new one in its `backups`, on the server's disk"
    ),
    command("admin erase", "POST /v1/admin/erase", "rewrite the store so that deleted bytes are gone from the disk"),
    command("admin derive", "POST /v1/admin/derive", "derive every fact of the organisation again", DRY_RUN),
    command("admin verify", "POST /v1/admin/verify", "walk the log's whole hash chain"),
    command(
        "admin reload",
        "POST /v1/admin/reload",
        "load the policies on the server's disk again, or promote those that wait in the shadow",
        Argument("promote", "the hash of the policies that wait (with reload = shadow)"),
    ),
)
