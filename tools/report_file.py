"""The file that a report is written to, checked before hours of measuring."""
import argparse
import os

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def page_of_docs(name):
    """A page of the documentation, the default of most reports."""
    return os.path.join(TOP, "docs", name)


def report_file(text):
    """What argparse makes of a file's name: relative to the folder from which the user called the script."""
    path = os.path.join(os.environ.get("CALLED_FROM", os.getcwd()), text)
    folder = os.path.dirname(path)
    if not os.path.isdir(folder):
        raise argparse.ArgumentTypeError(f"{text}: there is no folder {folder}")
    if os.path.isdir(path):
        raise argparse.ArgumentTypeError(f"{text} is a folder; name a file in it")
    if not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise argparse.ArgumentTypeError(f"{text} cannot be written to")
    return path


def page_with_tables(text):
    """The same of a page that exists, in which a report replaces tables."""
    path = report_file(text)
    if not os.path.exists(path):
        raise argparse.ArgumentTypeError(f"{text} does not exist; copy the page of docs/ in which the tables go")
    return path
