"""Programs of Debian packages, unchanged. A test is skipped where one is missing, and names the package."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77  # exit status of a skipped test for Meson


def skip(package):
    print(f"skipped: the package {package} is not installed (group programs of tools/packages.txt)", flush=True)
    sys.exit(SKIP)


def program(name, package):
    found = shutil.which(name)
    return found or skip(package)


def python_with(module, package):
    """The first python3 in PATH that has the module: another one may precede that of the system."""
    for folder in os.get_exec_path():
        python = shutil.which("python3", path=folder)
        if python and subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
            return python
    return skip(package)
