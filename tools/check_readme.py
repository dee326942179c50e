#!/usr/bin/env python3
"""Runs what README.md shows.

Every line of its ```sh blocks is run, block by block in one shell from the project's root, with
build/ first in PATH; the first command that fails fails the check. Folders that the commands add to
results/ are removed afterwards. Blocks of other languages (```text, ```json) are not run.

    tools/check_readme.py           run them
    tools/check_readme.py --list    only print them
    tools/check_readme.py FILE      another page
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def sh_blocks(text):
    """(line number of the first command, commands) per ```sh block."""
    blocks = []
    for match in re.finditer(r"^```sh[ \t]*\n(.*?)^```[ \t]*$", text, re.MULTILINE | re.DOTALL):
        blocks.append((text.count("\n", 0, match.start(1)) + 1, match[1]))
    return blocks


def run_block(page, line, commands):
    script = (
        f"trap 'echo \"{page.name}:$(({line} - 2 + LINENO)): failed with $?: $BASH_COMMAND\" >&2' ERR\n"
        + commands
    )
    environment = dict(os.environ, PATH=f"{ROOT / 'build'}:{os.environ['PATH']}")
    result = subprocess.run(
        ["bash", "-eEuo", "pipefail", "-c", script],
        cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, check=False,
    )
    return result.returncode


def entries(folder):
    return set(folder.iterdir()) if folder.is_dir() else set()


def main():
    arguments = [a for a in sys.argv[1:] if a != "--list"]
    page = pathlib.Path(arguments[0]).resolve() if arguments else ROOT / "README.md"
    blocks = sh_blocks(page.read_text())
    if not blocks:
        print(f"{page.name}: no ```sh block", file=sys.stderr)
        return 1
    if "--list" in sys.argv:
        for _, commands in blocks:
            print(commands, end="")
        return 0
    before = entries(ROOT / "results")
    try:
        for line, commands in blocks:
            print(f"--- {page.name}:{line}\n{commands}", end="", flush=True)
            code = run_block(page, line, commands)
            if code != 0:
                return 1
    finally:
        for added in entries(ROOT / "results") - before:
            shutil.rmtree(added) if added.is_dir() else added.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
