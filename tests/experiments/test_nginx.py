"""Where nginx is, and that what it is told keeps to its folders."""

from pathlib import Path

import pytest

from experiments import nginx
from experiments.errors import LabError


def test_nginx_that_is_missing_is_a_line(monkeypatch):
    monkeypatch.setattr("experiments.nginx.shutil.which", lambda *_, **__: None)
    with pytest.raises(LabError, match="nginx is missing: install it"):
        nginx.find_nginx()


@pytest.mark.parametrize(("user", "named"), [(0, True), (1000, False)])
def test_only_roots_workers_are_told_who_they_are(user, named, monkeypatch):
    """Another user's cannot change who they are, and nginx warns of the directive."""
    monkeypatch.setattr("experiments.nginx.os.geteuid", lambda: user)
    text = nginx.configuration(
        "worker_processes 3;",
        "sendfile on;",
        prefix=Path("/one"),
        root=Path("/two"),
        listen="127.0.0.1:8081 reuseport",
        connections=99,
    )
    assert ("user root root;" in text) is named
    assert text.index("worker_processes 3;") < text.index("events { worker_connections 99; }")
    assert text.index("http {") < text.index("  sendfile on;") < text.index("server {")
    assert "    listen 127.0.0.1:8081 reuseport;\n    root /two;\n" in text
