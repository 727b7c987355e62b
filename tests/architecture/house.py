"""Rules of the tree that no compiler checks: house.py ROOT [PATH...] prints what breaks them, below the paths where given.

    folder     holds at most 40 files
    function   of product code has at most 100 lines
    type       name defined at namespace scope in product code stands for one type
    word       of the list below does not come back in code, messages or documents

docs/contributing.md says why; docs/glossary.md has the words to use instead.
"""
import ast
import collections
import functools
import os
import re
import subprocess
import sys

MOST_FILES = 40
MOST_LINES = 100
PRODUCT = ("include/", "lib/", "topology/", "transports/", "tools/", "examples/")
CODE = (".hpp", ".cpp", ".h", ".c")

# (what must not come back, what to write instead). Whole words; "_" and case changes separate words as spaces do.
WORDS = [
    (r"host mpi", "native MPI"),
    (r"hosts? (call|communicator|parts)", "hierarchical call, backend"),
    (r"watchkeeper", "failure detector, membership"),
    (r"patience", "failure detector"),
    (r"verdicts?", "tuning decision; of the failure detector: decision"),
    (r"doorman|knocks?|strangers?", "acceptor, pending connection, unknown process"),
    (r"farewells?", "shutdown"),
    (r"loans?|lent|lend", "temporary registration"),
    (r"crowded", "oversubscribed"),
    (r"declined?|declines|declining", "unsupported; delegated to native MPI"),
    (r"excerpts?", "pruned plan"),
    (r"lacking", "missing"),
    (r"odd rank", "mismatching rank"),
    (r"go(es)? straight|straight on|straight way", "fast path"),
    (r"senders meet|meet at a nic", "incast"),
    (r"looks? after|looked after", "makes progress"),
    (r"brings and wants|given and demanded", "inputs, outputs"),
    (r"calls? under way|under way", "outstanding"),
    (r"carriers?", "backend, path"),
    (r"price[sd]?|pricing", "cost; of measured extra time: overhead"),
    (r"is (no|none of) (type|command|rank|root)", "invalid, unknown, out of range"),
    (r"can be told so", "set ..."),
    (r"whoever", "the one that; name the subject"),
    (r"thinks? well|plainly right", "valid"),
]
# Flags and JSON keys that users rely on keep their names.
PUBLISHED = re.compile(r'--price\b|\bpriced_by\b|"host_mpi"')
# The list itself, data from outside, and the page that maps old words to new ones.
WORD_EXEMPT = ("tests/architecture/house.py", "tests/architecture/house_test.py", "docs/glossary.md", "LICENSE")


def files(root):
    """Tracked and new files, as paths from the root."""
    listed = subprocess.run(["git", "-C", root, "ls-files", "--cached", "--others", "--exclude-standard"],
                            capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.splitlines()
    else:
        names = [os.path.relpath(os.path.join(folder, name), root)
                 for folder, _, found in os.walk(root) for name in found]
    return sorted(name for name in names if os.path.isfile(os.path.join(root, name)))


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as file:
        return file.read()


# ---- Folders -------------------------------------------------------------------------------------------


def crowded_folders(paths):
    count = collections.Counter(os.path.dirname(path) for path in paths)
    for folder, number in sorted(count.items()):
        if number > MOST_FILES and not folder.startswith("docs/"):
            yield f"{folder or '.'}: {number} files; at most {MOST_FILES}, make sub-folders by purpose"


# ---- C++ -----------------------------------------------------------------------------------------------

BLANKED = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])+\'',
                     re.DOTALL)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)


def bare(text):
    """The text with comments, strings and directives replaced by spaces; lines stay where they are."""
    def spaces(match):
        return re.sub(r"[^\n]", " ", match.group())
    return DIRECTIVE.sub(spaces, BLANKED.sub(spaces, text))


TYPE = re.compile(r"\b(?:class|struct|union|enum(?:\s+(?:class|struct))?)\s+(?:\[\[[^\]]*\]\]\s*|alignas\s*\([^)]*\)\s*)*"
                  r"(\w+)(?:\s+final)?\s*(?::[^:].*)?$", re.DOTALL)


@functools.lru_cache(maxsize=None)
def scopes(text):
    """(kind, name, first line, last line, nested in a type) of each function, type and namespace of a C++ file."""
    text = bare(text)
    stack, start, found = [], 0, []

    def line(at):
        return text.count("\n", 0, at) + 1

    for match in re.finditer(r"[{};]", text):
        at, mark = match.start(), match.group()
        if mark == "{":
            head = text[start:at].strip()
            inside_function = any(scope[0] in ("function", "other") for scope in stack)
            declared = TYPE.search(re.sub(r"template\s*<[^{;]*?>\s*(?=class|struct|union|enum)", "", head))
            if inside_function:
                kind, name = "other", ""
            elif re.match(r"(inline\s+)?namespace\b|extern\s+$|extern\b", head) and "(" not in head:
                kind, name = "namespace", head
            elif declared and not re.search(r"\)\s*(const|noexcept|override|final|\s)*$", head):
                kind, name = "type", declared.group(1)
            elif "(" in head and not re.search(r"=\s*$", head) and not re.search(r"(^|[^=!<>])=\s*[^=].*$", head.split("(")[0]):
                named = re.search(r"([\w:~]+|operator\s*\S+)\s*\(", head)
                kind, name = "function", named.group(1) if named else head[:40]
            else:
                kind, name = "other", ""
            first = line(start + len(text[start:at]) - len(text[start:at].lstrip()))
            stack.append((kind, name, first, any(scope[0] == "type" for scope in stack)))
            start = match.end()
        elif mark == "}":
            if stack:
                kind, name, first, nested = stack.pop()
                if kind != "other":
                    found.append((kind, name, first, line(at), nested))
            start = match.end()
        elif not (stack and stack[-1][0] in ("function", "other")) and text.count("(", start, at) <= text.count(")", start, at):
            start = match.end()
    return found


def functions(path, text):
    """(name, first line, last line) of each function of a file."""
    if path.endswith(CODE):
        yield from ((name, first, last) for kind, name, first, last, _ in scopes(text) if kind == "function")
    elif path.endswith(".py"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield node.name, node.lineno, node.end_lineno
    elif path.endswith((".sh", ".js")) or text.startswith("#!"):
        for match in re.finditer(r"^(?:function )?(\w+) ?\([^\n]*\) \{\n.*?^\}", text, re.MULTILINE | re.DOTALL):
            first = text.count("\n", 0, match.start()) + 1
            yield match.group(1), first, first + match.group().count("\n")


def long_functions(root, paths, most=MOST_LINES):
    for path in paths:
        if not path.startswith(PRODUCT):
            continue
        for name, first, last in functions(path, read(root, path)):
            if last - first + 1 > most:
                yield f"{path}:{first}: {name} has {last - first + 1} lines; at most {most}"


def types_of_one_name(root, paths):
    where = collections.defaultdict(list)
    for path in paths:
        if path.startswith(PRODUCT) and path.endswith(CODE):
            for kind, name, first, _, nested in scopes(read(root, path)):
                if kind == "type" and not nested:
                    where[name].append(f"{path}:{first}")
    for name, places in sorted(where.items()):
        if len(places) > 1:
            yield f"{name} is defined {len(places)} times: {', '.join(places)}"


# ---- Words ---------------------------------------------------------------------------------------------

ANY_WORD = re.compile("|".join(rf"\b(?:{pattern})\b" for pattern, _ in WORDS))
PATTERNS = [(re.compile(rf"\b(?:{pattern})\b"), instead) for pattern, instead in WORDS]


def as_words(text):
    """Identifiers and file names in words, lower case."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.sub(r"[_\-]+", " ", text).lower()


def bad_words(root, paths):
    for path in paths:
        if path in WORD_EXEMPT or path.startswith(("tests/fuzz/corpus/",)):
            continue
        text = read(root, path)
        if not ANY_WORD.search(as_words(os.path.basename(path) + "\n" + text)):
            continue
        for number, text in enumerate([os.path.basename(path), *text.split("\n")]):
            for pattern, instead in PATTERNS:
                for match in pattern.finditer(as_words(PUBLISHED.sub("", text))):
                    yield f'{path}:{number}: "{match.group()}"; write {instead}'


def findings(root, paths):
    yield from crowded_folders(paths)
    yield from long_functions(root, paths)
    yield from types_of_one_name(root, paths)
    yield from bad_words(root, paths)


def main():
    root, below = sys.argv[1], tuple(sys.argv[2:])
    number = 0
    for finding in findings(root, files(root)):
        if not below or finding.startswith(below) or any(f" {path}" in finding for path in below):
            print(finding)
            number += 1
    return 1 if number else 0


if __name__ == "__main__":
    sys.exit(main())
