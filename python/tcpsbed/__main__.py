"""The command `tcpsbed`, also `python -m tcpsbed`.

A node process, the agent on another computer and the first process in namespaces of its own take ways of their own,
without the command line: they must be small, and the last may have one thread only. The warm process of a campaign forks
for each command that it is asked for.
"""

from __future__ import annotations

import gc
import sys

if __name__ == "__main__" and not sys.flags.safe_path:
    del sys.path[0]  # the working folder: a file random.py there is nobody's module

from tcpsbed import shadows

sys.excepthook = shadows.tell

from tcpsbed.processes import heirs_end  # noqa: E402

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> None:
    """Runs a node (`node`), a host's part of a run (`agent`), commands in namespaces (`inside`), commands of a campaign
    (`warm`), or the command line.
    """
    heirs_end()
    if sys.argv[1:2] == ["node"]:
        from tcpsbed import _tcps

        sys.stdout = sys.stderr  # what hooks print; run_node writes its messages to file descriptor 1
        sys.exit(_tcps.run_node())
    if sys.argv[1:2] == ["agent"]:
        from tcpsbed.worlds import agent

        sys.exit(agent.main())
    if sys.argv[1:2] == ["inside"]:
        from tcpsbed import _tcps

        sys.exit(_tcps.run_isolated(sys.argv[2], sys.argv[3]))
    if sys.argv[1:2] == ["warm"]:
        from tcpsbed.campaign import warm

        warm.serve()  # returns in a fork, with the words of a command
    gc.set_threshold(
        100_000, 50, 100
    )  # a scenario of thousands of operators is millions of objects that stay
    try:
        command_line = _command_line(sys.argv[1:])
    except KeyboardInterrupt:
        print("tcpsbed: stopped", file=sys.stderr)
        sys.exit(130)
    command_line()


def _command_line(words: list[str]) -> Callable[[], None]:
    """The command line; a plain check goes without what reads the words of other commands."""
    if words[:1] == ["check"]:
        from tcpsbed.cli import check, ends

        if plain := check.plain(words[1:]):
            return lambda: ends.run(lambda: check.check(*plain))
    from tcpsbed.cli.app import main

    return main


if __name__ == "__main__":
    main()
