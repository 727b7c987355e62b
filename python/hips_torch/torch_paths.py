"""Prints where PyTorch's headers and libraries are: a line each of include folders, library folders, and the ABI of its strings."""

import os
import sys

import torch
from torch.utils import cpp_extension

headers = [path for path in cpp_extension.include_paths() if os.path.isdir(path)]
if not any(os.path.exists(os.path.join(path, "torch/version.h")) for path in headers):
    # As Debian installs it.
    headers += [path for path in ("/usr/include/torch/csrc/api/include", "/usr/include") if os.path.isdir(path)]
libraries = [path for path in cpp_extension.library_paths() if os.path.isdir(path)]
print(";".join(headers))
print(";".join(libraries))
print(int(torch._C._GLIBCXX_USE_CXX11_ABI))
sys.exit(0)
