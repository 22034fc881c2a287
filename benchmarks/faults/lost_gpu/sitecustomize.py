"""Loaded by Python before a program: the one that has FAULT_IN among its arguments loses its GPU in training.

At the FAULT_AT-th time that training may write a checkpoint, it gets the error that torch raises then.
"""

import os
import sys
import threading
from types import FrameType

left = int(os.environ["FAULT_AT"])


def lose(frame: FrameType, event: str, _argument: object) -> None:
    """Raise the error when it is time."""
    global left
    if event == "call" and frame.f_code.co_name == "save_if_due":
        left -= 1
        if left == 0:
            raise RuntimeError("CUDA error: unspecified launch failure\nCUDA kernel errors might be reported later")


if os.environ["FAULT_IN"] in sys.orig_argv:
    for switch in (sys.setprofile, threading.setprofile):  # training has threads of its own
        switch(lose)
