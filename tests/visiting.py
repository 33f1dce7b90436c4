"""Visits: pages that are opened in a browser, with everything that they say or ask for."""

from playwright.sync_api import Browser, Page


class Visit:
    """A page that was opened, and everything that it said or asked for."""

    def __init__(self, browser: Browser, address: str, width: int = 1280, **settings) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        self.page: Page = self.context.new_page()
        self.said: list[str] = []
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("dialog", lambda dialog: (self.said.append(dialog.message), dialog.dismiss()))
        self.page.on("request", lambda request: self._asked(request.url, address))
        self.page.goto(address)

    def _asked(self, url: str, own: str) -> None:
        if url != own and not url.startswith("data:"):
            self.said.append(f"request: {url}")

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, *_) -> None:
        self.context.close()
