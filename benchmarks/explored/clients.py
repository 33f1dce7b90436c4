"""Fifty clients that never pause, in a process of their own: they do not share the server's interpreter.

    python -m benchmarks.explored.clients PORT TARGET SECONDS COUNT

reads the cookie's secret and prints how many were answered, how many of these were refused, the median and the
99th percentile in seconds.
"""

import asyncio
import sys
from statistics import median
from time import monotonic, perf_counter

from benchmarks.process import run_module

CLIENTS = 50


async def client(head: bytes, port: int, stop: float) -> list[tuple[float, bool]]:
    """Asks again and again, at least once; the seconds of each answer, and whether it was one."""
    taken = []
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not taken or monotonic() < stop:
        began = perf_counter()
        writer.write(head)
        top = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in top.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.split(b":")[1]))
        taken.append((perf_counter() - began, b" 200 " in top.split(b"\r\n")[0]))
    writer.close()
    return taken


async def clients(port: int, secret: str, target: str, seconds: float, count: int) -> list[tuple[float, bool]]:
    """Many of them at once, the quickest answers first."""
    cookie = f"precedents-{port}={secret}"
    head = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nCookie: {cookie}\r\n\r\n".encode()
    stop = monotonic() + seconds
    found = await asyncio.gather(*(client(head, port, stop) for _ in range(count)))
    return sorted(each for taken in found for each in taken)


def asked(port: int, secret: str, target: str, seconds: float, count: int = CLIENTS) -> dict[str, float]:
    """What a process of clients tells: answers a second, errors, and milliseconds of the median and 99%."""
    words = [str(port), target, str(seconds), str(count)]
    ended = run_module("benchmarks.explored.clients", *words, given=secret)
    if ended.returncode:
        raise RuntimeError(ended.stderr)
    answers, errors, middle, high = map(float, ended.stdout.split())
    return {"rate": answers / seconds, "errors": errors, "p50": 1000 * middle, "p99": 1000 * high}


def main() -> None:
    """Asks, and prints one line."""
    port, target, seconds, count = sys.argv[1:]
    found = asyncio.run(clients(int(port), sys.stdin.read(), target, float(seconds), int(count)))
    times = [each for each, _ in found]
    errors = sum(not right for _, right in found)
    high = times[int(0.99 * (len(times) - 1))]
    sys.stdout.write(f"{len(found)} {errors} {median(times)} {high}\n")


if __name__ == "__main__":
    main()
