import os

from netem.machine import describe_machine


def test_network_settings_are_read_from_the_kernel(tmp_path):
    (tmp_path / "ipv4").mkdir()
    (tmp_path / "core").mkdir()
    (tmp_path / "ipv4/tcp_congestion_control").write_text("bbr\n")
    (tmp_path / "ipv4/tcp_available_congestion_control").write_text("reno bbr\n")
    (tmp_path / "core/default_qdisc").write_text("fq\n")
    machine = describe_machine(tmp_path)
    assert machine.congestion_control == "bbr"
    assert machine.congestion_controls == ("reno", "bbr")
    assert machine.default_qdisc == "fq"
    assert os.uname().release in machine.kernel
    assert machine.processors >= 1


def test_what_the_kernel_does_not_show_is_not_made_up(tmp_path):
    machine = describe_machine(tmp_path)
    assert (machine.congestion_control, machine.default_qdisc) == (None, None)
    assert machine.congestion_controls == ()
