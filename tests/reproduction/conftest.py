"""Tests of the data sets find files only where they say, and have a cache of their own."""

from pathlib import Path

import pooch
import pytest


@pytest.fixture
def cache(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def alone(monkeypatch, cache) -> None:
    monkeypatch.delenv("PRECEDENTS_DATA", raising=False)
    monkeypatch.setattr(pooch, "os_cache", lambda project: cache / project)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
