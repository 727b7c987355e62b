"""Writes a C++ header that holds the text of files: embed.py OUTPUT NAME=FILE..."""
import sys

with open(sys.argv[1], "w", encoding="utf-8") as header:
    header.write("#pragma once\n\n#include <string_view>\n\nnamespace hips::lab {\n\n")
    for argument in sys.argv[2:]:
        name, path = argument.split("=", 1)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        header.write(f'inline constexpr std::string_view {name} = R"file({text})file";\n\n')
    header.write("}  // namespace hips::lab\n")
