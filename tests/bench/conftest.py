"""Tests of the data sets find files only where they say, and have a cache of their own."""

import pytest


@pytest.fixture(autouse=True)
def alone(monkeypatch, tmp_path_factory) -> None:
    monkeypatch.delenv("PRECEDENTS_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
