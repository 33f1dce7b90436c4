"""Runs scripts, each in a process of its own that begins with the package imported, and says what they printed.

`python -m forked` reads the scripts as JSON, by their names, and prints by each name what it came to.
"""

import json
import os
import sys
import traceback
from tempfile import TemporaryFile

import precedents.public  # noqa: F401  once for all of them


def ran(script: str) -> dict[str, int | str]:
    """What it wrote to both outputs, and its exit code."""
    with TemporaryFile("w+") as out, TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            _run(script)
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        out.seek(0)
        err.seek(0)
        return {"code": code, "out": out.read(), "err": err.read()}


def _run(script: str) -> None:
    code = 1
    try:
        exec(compile(script, "script", "exec"), {"__name__": "__main__"})
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    json.dump({name: ran(script) for name, script in json.load(sys.stdin).items()}, sys.stdout)
