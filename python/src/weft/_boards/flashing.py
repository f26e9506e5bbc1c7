"""Programs a board with an RP2040 by picotool, over USB. (This was not tried with a board.)"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from weft.errors import BadUse

__all__ = ["flash", "picotool"]


def picotool() -> str:
    """Returns the path of picotool.

    Raises:
        BadUse: there is none.
    """
    found = shutil.which("picotool")
    if found is None:
        raise BadUse(
            "bare: a board is programmed by picotool, and there is none: install it (Debian trixie and "
            'later: apt install picotool), or use the emulator, boards.bare("emulated")'
        )
    return found


def flash(image: Path, where: str) -> None:
    """Writes the firmware into the flash of the board that is in BOOTSEL mode, and starts it.

    Raises:
        BadUse: there is no picotool, or it fails. The message contains picotool's message.
    """
    command = [picotool(), "load", "-v", "-x", str(image)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        message = (done.stderr + done.stdout).strip()
        raise BadUse(
            f"bare: picotool has not programmed the board for {where}: hold BOOTSEL while you plug the "
            f"board in, and start the program again. picotool said: {message}"
        )
