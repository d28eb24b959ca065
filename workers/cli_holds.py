"""`docmill pause|drain|resume|holds`: holding a tenant, a lane or a batch, and letting it go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from workers.console import errors as _err
from workers.console import lines as _out

if TYPE_CHECKING:
    from storage.control import ControlStore
    from storage.holds import Hold, Scope

NOTHING_HELD = 1

ScopeArgument = Annotated[str, typer.Argument(help="tenant, lane or batch")]
NameArgument = Annotated[str, typer.Argument(help="Its name or id.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for whoever looks at `docmill holds`.")]


def pause(scope: ScopeArgument, name: NameArgument, reason: Reason = "") -> None:
    """Begin nothing more of a tenant, lane or batch; what runs is finished."""
    _hold("pause", scope, name, reason)


def drain(scope: ScopeArgument, name: NameArgument, reason: Reason = "") -> None:
    """Release nothing more of a tenant, lane or batch; what is with a worker or the broker is finished."""
    _hold("drain", scope, name, reason)


def resume(scope: ScopeArgument, name: NameArgument) -> None:
    """End a pause or a drain."""
    if not _control().release(_scope(scope), name):
        _err.print(f"{scope} {name} is not held; `docmill holds` lists what is")
        raise typer.Exit(NOTHING_HELD)
    _out.print(f"{scope} {name} goes on")


def list_holds() -> None:
    """What is held, since when and why."""
    for held in _control().held():
        _out.print(
            f"{held.kind:6} {held.scope:7} {held.name}  since {held.since:%Y-%m-%d %H:%M:%S}  {held.reason or ''}"
        )


def _hold(kind: str, scope: str, name: str, reason: str) -> None:
    concerned = _control().hold(_scope(scope), name, _kind(kind), reason=reason or None)
    _out.print(f"{scope} {name}: {kind}; {concerned} waiting jobs stay; `docmill resume {scope} {name}` ends it")


def _kind(kind: str) -> Hold:
    from storage.holds import Hold

    return Hold(kind)


def _scope(scope: str) -> Scope:
    from storage.holds import Scope

    if scope not in list(Scope):
        _err.print(f"{scope!r} cannot be held: give one of {', '.join(Scope)}")
        raise typer.Exit(2)
    return Scope(scope)


def _control() -> ControlStore:
    from workers.cli import use_running_stack
    from workers.services import services

    use_running_stack()
    return services().control


def register(main: typer.Typer) -> None:
    """Add the commands to `docmill`."""
    for command in (pause, drain, resume):
        main.command()(command)
    main.command(name="holds")(list_holds)
