"""The first and only program of a user-mode Linux guest: try NetEm there, then power off.

The guest sees the host's file system, so this is the same Python with the same packages. It does by
itself what an init would (mount, load modules), because a minimal machine has no `insmod`, and
`modprobe` would look for the modules of another kernel.
"""

import ctypes
import json
import os
import sys
from pathlib import Path
from typing import Final

__all__ = ["main"]

_POWER_OFF: Final = 0x4321FEDC  # LINUX_REBOOT_CMD_POWER_OFF, <linux/reboot.h>


def main(mark: str, modules: list[str]) -> None:
    """Load kernel modules from their files, try NetEm, print mark and result, end the guest."""
    libc = ctypes.CDLL(None, use_errno=True)
    result: dict[str, str | float | bool] = {"works": False, "reason": "the trial in it broke off"}
    try:
        _check(libc.mount(b"proc", b"/proc", b"proc", ctypes.c_ulong(0), None), "/proc")
        for module in modules:
            image = Path(module).read_bytes()
            _check(libc.init_module(image, ctypes.c_ulong(len(image)), b""), module)
        # Not at the head of the file: this import reads /proc, which is there only now.
        from netem.backends.trial import run_trial  # noqa: PLC0415

        result = {**run_trial(), "guest_kernel": os.uname().release}
    except OSError as error:
        result["reason"] = f"in the guest: {error}"
    finally:
        sys.stdout.write(mark + json.dumps(result) + "\n")
        sys.stdout.flush()
        libc.reboot(_POWER_OFF)


def _check(code: int, what: str) -> None:
    if code:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


if __name__ == "__main__":
    # User-mode Linux adds boot parameters of its own behind ours.
    _mark, *_modules = sys.argv[1 : sys.argv.index("end")]
    main(_mark, _modules)
