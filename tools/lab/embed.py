"""Writes the definitions of scripts.hpp with the text of files: embed.py OUTPUT NAME=FILE..."""
import sys

with open(sys.argv[1], "w", encoding="utf-8") as source:
    source.write('#include "tools/lab/scripts.hpp"\n\nnamespace hips::lab {\n\n')
    for argument in sys.argv[2:]:
        name, path = argument.split("=", 1)
        with open(path, encoding="utf-8") as file:
            source.write(f'const std::string_view {name} = R"file({file.read()})file";\n\n')
    source.write("}  // namespace hips::lab\n")
