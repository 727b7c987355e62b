"""The exceptions of HiPS."""


class Error(RuntimeError):
    """A call of HiPS failed.

    code   what went wrong: "peer lost", "mismatch", "timed out", "aborted", ...
    rank   the rank at fault in the communicator, or None
    scope  the largest thing that is broken and has to be made again: "operation", "link", "peer", "communicator" or "process"
    errno  of the system call that failed, or None
    nic    the NIC at fault, numbered from 0, or None

    After an error of any scope but "operation" the communicator has failed on all ranks: each later call raises the same error.
    """

    def __init__(self, text, code="internal error", rank=None, scope="operation", errno=None, nic=None):
        super().__init__(text)
        self.code, self.rank, self.scope, self.errno, self.nic = code, rank, scope, errno, nic

    def __reduce__(self):
        return type(self), (str(self), self.code, self.rank, self.scope, self.errno, self.nic)


class ArgumentError(Error, ValueError):
    """An argument is wrong: a malformed topology, an operation that the type does not have. The call did not take place."""


_SCOPES = ("operation", "link", "peer", "communicator", "process")


def make_error(code, text, rank=-1, scope=0, errno=0, nic=-1):
    """The exception for an error of the library, in the values of its C API."""
    kind = ArgumentError if code == "invalid argument" else Error
    return kind(text, code, rank if rank >= 0 else None, _SCOPES[scope], errno or None, nic if nic >= 0 else None)
