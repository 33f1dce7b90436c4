"""precedents bench: the name that `precedents reproduction` had before; it goes on working."""

from precedents.cli.reproduction import reproduction

bench = reproduction
