"""Writes the definitions of a header's string_views with the text of files, so that an installed program needs
no files beside it: embed.py OUTPUT HEADER NAMESPACE NAME=FILE..."""
import sys

output, header, namespace = sys.argv[1:4]
with open(output, "w", encoding="utf-8") as source:
    source.write(f'#include "{header}"\n\nnamespace {namespace} {{\n\n')
    for argument in sys.argv[4:]:
        name, path = argument.split("=", 1)
        with open(path, encoding="utf-8") as file:
            source.write(f'const std::string_view {name} = R"file({file.read()})file";\n\n')
    source.write(f"}}  // namespace {namespace}\n")
