"""Explorer: a server over a world in threads of its own, and what shows it in a notebook."""

from dataclasses import dataclass
from html import escape
from urllib.parse import urlsplit

from precedents.errors import InputError
from precedents.explorer.app import application
from precedents.explorer.jobs import FILL
from precedents.explorer.safety import HOST, STANDARD, Door
from precedents.explorer.server import Listener, Serving
from precedents.explorer.world import World
from precedents.seen import clipped

STYLE = "width:100%;height:700px;border:1px solid #888;border-radius:6px"


@dataclass(eq=False)
class Explorer:
    """A running explorer. In a notebook it shows itself; `address` opens it in any browser of this machine."""

    world: World
    door: Door
    serving: Serving
    outside: str = ""  # where a proxy serves it

    @property
    def address(self) -> str:
        """What to open: whoever has it can see the data."""
        return f"{self.outside}?token={self.door.token}" if self.outside else self.door.address

    def __repr__(self) -> str:
        state = "running" if self.serving.thread is not None and self.serving.thread.is_alive() else "stopped"
        return f"Explorer({self.world.name}, {len(self.world.test)} cases, {state})"

    def _repr_html_(self) -> str:
        """A frame, and beneath it a link that works where a frame does not."""
        shown = escape(self.address if self.outside else self.address.replace("127.0.0.1", "localhost"))
        link = f'<a href="{shown}" target="_blank" rel="noreferrer noopener">Open it in a page of its own</a>'
        return f'<iframe src="{shown}" style="{STYLE}" title="Explorer"></iframe><p>{link}</p>'

    def wait(self) -> None:
        """Until it is ended by Ctrl-C."""
        try:
            while self.serving.thread is not None and self.serving.thread.is_alive():
                self.serving.thread.join(0.5)
        except KeyboardInterrupt:
            pass
        finally:
            self.stop()

    def stop(self) -> None:
        """Ends the server and its work."""
        self.world.close()
        self.serving.stop()


def started(world: World, place: Listener, *, framed: bool = False, proxy: str | None = None) -> Explorer:
    """The explorer of a world; `framed` lets notebooks of this machine show it, `proxy` is in front of it."""
    outside, origin = ("", None) if proxy is None else _outside(proxy)
    listening = place.bound()
    door = place.door(listening, framed)
    if origin is not None:
        door = door.behind(origin)
    serving = Serving(application(world, door), place, listening)
    serving.start()
    world.jobs.ask(FILL, "a look at both sets", world.fill, lasting=True)
    return Explorer(world, door, serving, outside)


def _outside(proxy: str) -> tuple[str, str]:
    """The address of a proxy, and its origin as browsers send it: in small letters, without the usual port."""
    try:
        parts = urlsplit(proxy)
        port, scheme, host = parts.port, parts.scheme.lower(), (parts.hostname or "").lower()
    except ValueError:
        port, scheme, host = None, "", ""
    name = f"[{host}]" if ":" in host else host
    if (
        scheme not in STANDARD
        or not HOST.fullmatch(name)
        or "@" in parts.netloc
        or parts.query
        or parts.fragment
    ):
        raise InputError(
            f"proxy is {clipped(proxy)!r}. Pass the address at which it is served, with https:// and nothing "
            "after its path."
        )
    origin = f"{scheme}://{name}{'' if port in (None, STANDARD[scheme]) else f':{port}'}"
    return f"{origin}{parts.path.rstrip('/')}/", origin
