"""The commands of `tcpsbed` and what their help has in common."""

from __future__ import annotations

import typer

from tcpsbed.cli import (
    bilateral,
    calibrate,
    check_qos,
    console,
    data,
    doctor,
    ends,
    image,
    latency,
    netns,
    new,
    plugins,
    predict,
    proxy,
    reproduce,
    run,
    runs,
    scenario,
    stability,
    step,
    study,
    sweep,
    tune,
    xlsx,
)
from tcpsbed.cli.failures import FAILED, guarded, refuse_broken
from tcpsbed.interrupts import as_interrupts

EPILOG = """\b
A first session:
  tcpsbed init my.toml                        write a commented scenario
  tcpsbed check my.toml                       is it right?
  tcpsbed run my.toml                         in virtual time, seconds for minutes
  tcpsbed run my.toml --world real --live     on real sockets
  tcpsbed latency my.toml                     component by component
  tcpsbed sweep my.toml --over 'links.l1.rate=1 Mbit/s,2 Mbit/s' --seeds 10
  tcpsbed proxy --profile lte 7000=127.0.0.1:7100   delay and loss between other programs
  tcpsbed reproduce --list                    published experiments, run again
  tcpsbed data                                recordings that they take
  tcpsbed doctor                              what this machine can do
  tcpsbed step step.toml            how a control loop bears the network
"""

app = typer.Typer(
    name="tcpsbed",
    help="A testbed for teleoperation over networks: one scenario, in virtual time or on real sockets.",
    epilog=EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


@app.callback(invoke_without_command=True)
def version(show: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True)) -> None:
    """A testbed for teleoperation over networks: one scenario, in virtual time or on real sockets."""
    if show:
        from tcpsbed import __version__

        typer.echo(__version__)
        raise typer.Exit


for module in (
    run,
    scenario,
    new,
    plugins,
    latency,
    sweep,
    step,
    stability,
    tune,
    bilateral,
    predict,
    check_qos,
    runs,
    calibrate,
    proxy,
    netns,
    doctor,
    image,
    xlsx,
    reproduce,
    data,
    console,
    study,
):
    module.register(app)


def main() -> None:
    """Runs the command line."""
    try:
        _main()
    except Exception as error:
        refuse_broken(error)
        raise


def _main() -> None:
    ends.open_outputs()
    as_interrupts()
    try:
        guarded(app)(prog_name="tcpsbed")  # help and refusals are written outside of commands
    except SystemExit as end:
        ends.ended(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise
    except BaseException:
        ends.ended(FAILED)
        raise
