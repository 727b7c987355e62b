#pragma once

/// For thread_local variables of the interposer's hot path: it is loaded with the program, so their place is
/// known by then, and no call has to find it. What is loaded later has room for a few of them.
#define HIPS_TLS_OF_PRELOADED __attribute__((tls_model("initial-exec")))
