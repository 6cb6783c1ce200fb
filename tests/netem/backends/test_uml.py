"""The `uml` backend where there is no guest; tests/lab/test_netem_uml.py has real ones."""

from netem.backends import UmlBackend


def test_without_the_program_the_package_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    report = UmlBackend().probe()
    assert not report.works
    assert "Debian has it in user-mode-linux" in report.reason
