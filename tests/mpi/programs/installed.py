"""Programs of Debian packages that know nothing of HiPS: found, or the test is skipped and says what is missing."""

import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
HERE = os.path.dirname(os.path.abspath(__file__))
SKIP = 77  # what Meson takes for a skipped test


def skip(package):
    print(f"skipped: the package {package} is not installed (group programs of tools/packages.txt)", flush=True)
    sys.exit(SKIP)


def program(name, package):
    found = shutil.which(name)
    return found or skip(package)


def python_with(module, package):
    """The first python3 of PATH that has the module: another one may stand before the system's."""
    for folder in os.get_exec_path():
        python = shutil.which("python3", path=folder)
        if python and subprocess.run([python, "-c", f"import {module}"], capture_output=True, check=False).returncode == 0:
            return python
    return skip(package)
