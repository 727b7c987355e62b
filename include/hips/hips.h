/*
 * HiPS: hierarchical synchronization on fabrics whose wiring is known. The C API.
 *
 * Every call returns a status; on failure hips_last_error() gives one sentence with the cause, and
 * hips_last_error_info() all that is known, for the calling thread. Outputs are set only on success, but for
 * those that say how a request ended (hips_test()).
 */
#ifndef HIPS_HIPS_H
#define HIPS_HIPS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define HIPS_API __attribute__((visibility("default")))
#else
#define HIPS_API
#endif

#define HIPS_VERSION_MAJOR 0
#define HIPS_VERSION_MINOR 1
#define HIPS_VERSION_PATCH 0

/*
 * An error of a collective on vectors, of hips_barrier() or of a request:
 *
 * - Found before the call begins, it leaves the communicator as it was, and the call did not take place on
 *   this rank: HIPS_ERR_INVALID_ARGUMENT; HIPS_ERR_UNSUPPORTED for what this communicator cannot run, or
 *   in a child of fork(); HIPS_ERR_OUT_OF_MEMORY when a request is made.
 * - Any other has failed the communicator, for good and on all ranks: each later call gives the same error.
 *   Destroy it, and make another of the ranks that are left.
 */
typedef enum {
  HIPS_OK = 0,
  HIPS_ERR_INVALID_ARGUMENT = 1, /* the caller's input */
  HIPS_ERR_UNSUPPORTED = 2,      /* well formed, but not to be done here */
  HIPS_ERR_MISMATCH = 3,         /* ranks disagree */
  HIPS_ERR_PEER_LOST = 4,        /* a rank died or left */
  HIPS_ERR_ABORTED = 5,          /* a rank called hips_comm_abort() */
  HIPS_ERR_TIMEOUT = 6,          /* its timeout passed */
  HIPS_ERR_OUT_OF_MEMORY = 7,
  HIPS_ERR_SYSTEM = 8,
  HIPS_ERR_INTERNAL = 9
} hips_status_t;

/*
 * HIPS_FLOAT16 is binary16 of IEEE 754, HIPS_BFLOAT16 the upper half of a float. Both are reduced in float:
 * all inputs of one pass are converted, reduced and rounded once, to nearest even.
 */
typedef enum {
  HIPS_INT32 = 0,
  HIPS_INT64 = 1,
  HIPS_FLOAT32 = 2,
  HIPS_FLOAT64 = 3,
  HIPS_INT8 = 4,
  HIPS_INT16 = 5,
  HIPS_UINT8 = 6,
  HIPS_UINT16 = 7,
  HIPS_UINT32 = 8,
  HIPS_UINT64 = 9,
  HIPS_FLOAT16 = 10,
  HIPS_BFLOAT16 = 11,
  HIPS_TYPE_NULL = 0x7fffffff /* invalid; makes the enumeration wide enough for HIPS_BYTES() */
} hips_type_t;

/*
 * The type of elements of n bytes, 1 to HIPS_MAX_ELEMENT_BYTES: structures, small matrices. Collectives that
 * only move data take it, and reductions by a user-defined op of hips_op_create().
 */
#define HIPS_MAX_ELEMENT_BYTES 1024
#define HIPS_BYTES(n) ((hips_type_t)((n) <= HIPS_MAX_ELEMENT_BYTES ? (int)(n) << 8 | 0xff : 0xff))

/*
 * Sums and products of integers wrap. Of two operands, min gives the first unless the second compares less,
 * and max unless it compares greater; NaN compares neither.
 *
 * HIPS_AVG divides the sum once by the number of ranks: the wrapped sum of integers rounded towards zero, as
 * ncclAvg does; that of floating types by an IEEE division.
 *
 * Bitwise and logical operations are for integers only. Logical ones take 0 for false and any other value
 * for true, and give 0 or 1.
 */
typedef enum {
  HIPS_SUM = 0,
  HIPS_PROD = 1,
  HIPS_MIN = 2,
  HIPS_MAX = 3,
  HIPS_AVG = 4,
  HIPS_BAND = 5,
  HIPS_BOR = 6,
  HIPS_BXOR = 7,
  HIPS_LAND = 8,
  HIPS_LOR = 9,
  HIPS_LXOR = 10,
  HIPS_OP_NULL = 0x7fffffff /* invalid; makes the enumeration wide enough for hips_op_create() */
} hips_op_t;

/*
 * A user-defined reduction: inout[i] = in[i] op inout[i] for `count` elements of `type`, as a function of
 * MPI_Op_create(), with 64-bit counts and the `context` that hips_op_create() was given. `in` comes from
 * lower ranks than `inout`. Both are aligned like consecutive elements in memory of malloc(), and do not
 * overlap; they may be the library's memory. A vector is passed in pieces, which differ between ranks.
 *
 * It runs on any thread that makes progress on the call, on two at once for two communicators, and must not
 * call HiPS, throw, or longjmp. It has to be associative. For equal results on all ranks the same operands
 * must give the same bits on all of them.
 */
typedef void (*hips_user_function_t)(const void* in, void* inout, uint64_t count, hips_type_t type,
                                     void* context);

/*
 * Makes an op of a function, for all reductions, on every communicator and for every type, HIPS_BYTES()
 * included. Local: each rank makes its own op, and passes it where the other ranks pass theirs.
 *
 * commutative: 0 keeps the order of ranks, 0 op 1 op ... op n-1, as in MPI. That costs nothing in shared
 * memory of one node, and under HIPS_REPRODUCIBLE=any. Under other plans every rank gets the vectors of all
 * ranks: size times the memory and the traffic.
 *
 * release: may be null; called with `context` once the op has been freed and the last call or request with it
 * has ended, on the thread that notices; it must not call HiPS. Without it, keep what `context` points to
 * until then.
 *
 * Ranks compare whether they pass a commutative or an ordered op, and the size of elements. They cannot
 * compare functions, whose addresses differ between processes.
 *
 * HIPS_ERR_INVALID_ARGUMENT: function or op is null. HIPS_ERR_OUT_OF_MEMORY: there are 4095 ops already.
 * Threads: any.
 */
HIPS_API hips_status_t hips_op_create(hips_user_function_t function, int commutative, void* context,
                                      void (*release)(void* context), hips_op_t* op);

/*
 * Frees an op and sets *op to HIPS_OP_NULL. Outstanding calls and persistent requests keep what they need of
 * it until they have ended. HIPS_ERR_INVALID_ARGUMENT: not of hips_op_create(), or freed before.
 */
HIPS_API hips_status_t hips_op_free(hips_op_t* op);

/* As the input of a collective: the input is in the output buffer. The same buffer twice means this, too. */
#define HIPS_IN_PLACE ((const void*)(intptr_t)-1)

typedef struct hips_comm* hips_comm_t;

/*
 * How ranks find each other: one collective that the caller supplies (MPI, torchrun's store, ...).
 * allgather: every rank gives `bytes` bytes; `recv` takes size * bytes, in rank order. Returns 0 on success.
 *
 * progress: may be null. Called about every millisecond, on the waiting thread, while a call on the
 * communicator waits, so that the caller's own runtime makes progress: the peer that this rank waits for may
 * itself wait for the rest of an MPI message from this rank. It may free other communicators. `context` then has
 * to live as long as the communicator and those that hips_comm_split() and hips_comm_dup() make from it.
 */
typedef struct {
  size_t struct_size; /* sizeof(hips_bootstrap_t): lets the struct grow */
  int rank;
  int size;
  int (*allgather)(void* context, const void* send, void* recv, size_t bytes);
  void* context;
  void (*progress)(void* context);
} hips_bootstrap_t;

/*
 * Which threads call, on one communicator and its requests. Different communicators may be called by
 * different threads at once in every mode.
 */
typedef enum {
  /* As MPI_THREAD_SERIALIZED: any thread, one call at a time. Concurrent calls are undefined; most are
   * found, and return HIPS_ERR_INVALID_ARGUMENT. Unlike in MPI,
   * several threads may test and wait for different requests at once. */
  HIPS_THREAD_SERIALIZED = 0,
  /* The program promises that no two threads use the communicator or its requests at once, and that while it has requests
   * outstanding no other thread waits on any other communicator: such a wait makes progress on all. Small requests cost less. */
  HIPS_THREAD_SINGLE = 1,
  /* Deprecated name of HIPS_THREAD_SERIALIZED. It allows less than MPI_THREAD_MULTIPLE does. */
  HIPS_THREAD_MULTIPLE = HIPS_THREAD_SERIALIZED
} hips_thread_mode_t;

/* A null string means: from the environment (HIPS_TOPO, HIPS_ALGORITHM, HIPS_PATTERN), else the default. */
typedef struct {
  size_t struct_size;    /* sizeof(hips_comm_config_t) */
  const char* topology;  /* spec, "bcube:3,1"; default: one switch of all ranks */
  const char* algorithm; /* "hips", "flat-ring", ...; default: chosen by size */
  const char* pattern;   /* "mesh", "mesh,ring", "ps:2"; default: by size on switches */
  const char* name;      /* of the communicator, in logs and errors */
  int thread_mode;       /* HIPS_THREAD_...; hips_comm_split() and hips_comm_dup() pass it on */
  /*
   * Of a communicator that has some of the ranks of a job: this rank's number in the job, and how many there are. It is then
   * planned on the part of the topology that its ranks occupy, as those of hips_comm_split() are. 0, 0: it has them all.
   */
  int job_rank;
  int job_size;
  /* Longest time that a call on it may wait, and on those made from it; 0: HIPS_TIMEOUT, or no limit. hips_comm_create() itself
   * is limited by HIPS_TIMEOUT, and where the library connects the ranks by 60 s for all of them to come. */
  int64_t timeout_ms;
} hips_comm_config_t;

#define HIPS_COMM_CONFIG_INIT \
  { sizeof(hips_comm_config_t), 0, 0, 0, 0, HIPS_THREAD_SERIALIZED, 0, 0, 0 }

/*
 * Creates a communicator of all ranks of `bootstrap`; with a null bootstrap, of the ranks that HIPS_RANK,
 * HIPS_SIZE and HIPS_ROOT=host:port describe, else torchrun's variables, else those of a launcher with HIPS_ROOT. `config` may be
 * null. Collective.
 *
 * HIPS_ERR_TIMEOUT: ranks did not come in time. HIPS_ERR_MISMATCH, HIPS_ERR_UNSUPPORTED, HIPS_ERR_INVALID_ARGUMENT of the topology:
 * on all ranks. Null arguments, struct_size, thread_mode and timeout_ms: on this rank, and the others wait.
 */
HIPS_API hips_status_t hips_comm_create(const hips_comm_config_t* config, const hips_bootstrap_t* bootstrap,
                                        hips_comm_t* comm);

/*
 * Leaves the communicator and frees it. Peers that still need data of this rank get HIPS_ERR_PEER_LOST.
 * Local: waits for nobody. Null is allowed. Requests stay valid, and may be waited for as before: the rank
 * leaves when the last of them has ended.
 */
HIPS_API hips_status_t hips_comm_destroy(hips_comm_t comm);

/*
 * Ends the communicator's calls on all ranks: a blocked or outstanding one, and every later one, returns
 * HIPS_ERR_ABORTED with this rank and `text`, of which 4096 bytes are kept; null is allowed. Ranks that are
 * in a call hear of it within milliseconds; should this rank's process die instead, they hear of that within
 * HIPS_DEAD_AFTER. Returns once the communicator has failed here. It stays failed: destroy it. Without
 * effect, and HIPS_OK, when it has failed before. Local: waits for no peer's call.
 *
 * Threads: any, also while another thread is in a call on the communicator.
 */
HIPS_API hips_status_t hips_comm_abort(hips_comm_t comm, const char* text);

/* The color of a rank that is to be in no new communicator. Not MPI_UNDEFINED, which is an error. */
#define HIPS_UNDEFINED (-1)

/*
 * Splits a communicator: *newcomm has the ranks that pass the same color (0 or more), ordered by key and,
 * when keys are equal, by rank in `comm`; null for HIPS_UNDEFINED. It is planned on the part of the topology
 * that its ranks occupy. Collective over `comm`, which stays as it is; the two may be destroyed in any order.
 * Where the ranks share the memory of a node and no topology is named it takes as long as one small allgather,
 * and hips_comm_dup() waits for no other rank; else about six small collectives, or three where all these ranks have destroyed
 * such a communicator before: HiPS keeps the last four of a process, and uses them again.
 */
HIPS_API hips_status_t hips_comm_split(hips_comm_t comm, int color, int key, hips_comm_t* newcomm);
/* Another communicator of the same ranks and plans; calls on one wait for none on the other. Collective. */
HIPS_API hips_status_t hips_comm_dup(hips_comm_t comm, hips_comm_t* newcomm);

/*
 * What is left of a communicator that has failed: *newcomm has the ranks that have neither died nor destroyed `comm`, in their order,
 * and is planned on the part of the topology that they occupy. Ranks that die meanwhile are left out, too. Collective over the ranks
 * that are left: each of them calls it once its calls on `comm` have ended with an error, and destroys `comm` afterwards. A rank that
 * does not want to go on destroys it instead, at any time. Where a network breaks in two, each half gets a communicator of its own:
 * look at its size. It takes as long as hips_comm_create(), and up to half a second until it is sure who has died.
 *
 * HIPS_ERR_TIMEOUT: a rank that is left did neither in the time that a call may take; this rank is left out from then on. Errors
 * else as hips_comm_create(), on all ranks.
 */
HIPS_API hips_status_t hips_comm_shrink(hips_comm_t comm, hips_comm_t* newcomm);

HIPS_API hips_status_t hips_comm_rank(hips_comm_t comm, int* rank);
HIPS_API hips_status_t hips_comm_size(hips_comm_t comm, int* size);

/*
 * Which plan runs, in one line: "HiPS, 2 lanes, mesh on both levels on BCube(3,1); shm; emulated: 9 servers
 * on 1 node". Lives as long as comm.
 */
HIPS_API const char* hips_comm_describe(hips_comm_t comm);

/*
 * out[i] = op over all ranks of in[i], for `count` elements. Bitwise equal on all ranks. Blocks until the
 * result is in `out` and both buffers may be reused. Every rank passes the same count, type and op.
 * HIPS_ERR_INVALID_ARGUMENT: a bitwise or logical op on a floating type, a predefined op on HIPS_BYTES(), an
 * invalid type or op, a null buffer, or buffers that overlap in part; the call did not take place.
 */
HIPS_API hips_status_t hips_allreduce(const void* in, void* out, uint64_t count, hips_type_t type,
                                      hips_op_t op, hips_comm_t comm);

/* One of many vectors; in place where `in` is HIPS_IN_PLACE or equal to `out`. */
typedef struct {
  const void* in;
  void* out;
  uint64_t count;
  hips_type_t type;
  int32_t priority; /* lower numbers go first; the order of the list where they are equal */
} hips_buffer_t;

/*
 * Allreduces of many vectors as one call, such as the gradients of a network: small ones (up to 64 KiB) are
 * packed together, and several calls are outstanding at once. Put the vectors that are needed first, those of
 * the lower layers, at the front, or give them lower priority numbers; the numbers also decide between calls
 * on several communicators that share a NIC. All ranks pass the same counts, types and priorities, in the
 * same order. Blocks until all results are there.
 */
HIPS_API hips_status_t hips_allreduce_coalesced(const hips_buffer_t* buffers, size_t num, hips_op_t op,
                                                hips_comm_t comm);

/*
 * The other collectives. Each blocks until this rank's part is done and its buffers may be reused; except for
 * the barrier, that says nothing of the other ranks. All ranks of the communicator make the same call with
 * the same count(s), type, op and root. Buffers do not overlap, except in place. Errors as hips_allreduce();
 * also a root that is out of range.
 */

/*
 * Every rank gives `size` sections of `count` elements; out = section `rank` of the reduction over all ranks.
 * HIPS_IN_PLACE: the sections are in `out`, whose first `count` elements hold the result afterwards; the
 * others are undefined.
 */
HIPS_API hips_status_t hips_reduce_scatter_block(const void* in, void* out, uint64_t count, hips_type_t type,
                                                 hips_op_t op, hips_comm_t comm);

/* The same with sections of counts[0], counts[1], ... elements: `size` of them, the same on all ranks. */
HIPS_API hips_status_t hips_reduce_scatter(const void* in, void* out, const uint64_t* counts,
                                           hips_type_t type, hips_op_t op, hips_comm_t comm);

/*
 * Every rank gives `count` elements; out = those of all ranks, in rank order. HIPS_IN_PLACE: this rank's
 * are in their place in `out` already.
 */
HIPS_API hips_status_t hips_allgather(const void* in, void* out, uint64_t count, hips_type_t type,
                                      hips_comm_t comm);

/*
 * The same with counts[r] elements of rank r, which go to out + displacements[r]; null: one after the other.
 * `counts` is the same on all ranks, `displacements` need not be. Sections do not overlap in `out`.
 */
HIPS_API hips_status_t hips_allgatherv(const void* in, void* out, const uint64_t* counts,
                                       const uint64_t* displacements, hips_type_t type, hips_comm_t comm);

/* buffer of all ranks = buffer of `root`. */
HIPS_API hips_status_t hips_bcast(void* buffer, uint64_t count, hips_type_t type, int root, hips_comm_t comm);

/*
 * out = op over all ranks of `in`, on `root`; the other ranks' `out` is ignored. HIPS_IN_PLACE, on `root`:
 * its input is in `out`.
 */
HIPS_API hips_status_t hips_reduce(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op,
                                   int root, hips_comm_t comm);

/*
 * Every rank gives `count` elements; `out` of `root` = those of all ranks, in rank order; the other ranks' `out` is
 * ignored. HIPS_IN_PLACE, on `root`: its elements are in their place in `out` already.
 */
HIPS_API hips_status_t hips_gather(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                                   hips_comm_t comm);

/*
 * `root` gives `size` sections of `count` elements; out = section `rank`. The other ranks' `in` is ignored. As `out`
 * the root may pass the place of its own section in `in`, which then stays there.
 */
HIPS_API hips_status_t hips_scatter(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                                    hips_comm_t comm);

/*
 * Every rank gives `size` sections of `count` elements, one for each rank; out = section `rank` of all ranks, in rank
 * order. Between nodes it runs as a scatter from each rank, all at once, on the plans of those. Not in place.
 */
HIPS_API hips_status_t hips_alltoall(const void* in, void* out, uint64_t count, hips_type_t type,
                                     hips_comm_t comm);

/* Returns once every rank has called it. */
HIPS_API hips_status_t hips_barrier(hips_comm_t comm);

/*
 * Requests: calls that are started now and end later. Until a call has ended its buffers belong to it; then
 * the request's next hips_test() or hips_wait() says how it ended. Arrays of counts and displacements are
 * copied.
 *
 * Any number may be outstanding. On one communicator they take place in the order in which they were started,
 * blocking calls among them; all ranks start the same ones in the same order. They make progress while this
 * process is in hips_test(), hips_wait() or a blocking call, on any communicator. While it computes, only the
 * progress thread of HIPS_PROGRESS_THREAD=on makes progress: without it, a program that wants overlap tests
 * now and then.
 *
 * Cost: the call's own; an allocation for a hips_i...() while another is outstanding, none for hips_start().
 *
 * Threads: as the communicator's calls; different requests may be waited for by different threads, unless the
 * communicator was created with HIPS_THREAD_SINGLE.
 */
typedef struct hips_request* hips_request_t;

#define HIPS_REQUEST_NULL ((hips_request_t)0)

/* Start what the call without the "i" does. Errors as there; no request is made then. */
HIPS_API hips_status_t hips_iallreduce(const void* in, void* out, uint64_t count, hips_type_t type,
                                       hips_op_t op, hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_ireduce_scatter_block(const void* in, void* out, uint64_t count, hips_type_t type,
                                                  hips_op_t op, hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_ireduce_scatter(const void* in, void* out, const uint64_t* counts,
                                            hips_type_t type, hips_op_t op, hips_comm_t comm,
                                            hips_request_t* request);
HIPS_API hips_status_t hips_iallgather(const void* in, void* out, uint64_t count, hips_type_t type,
                                       hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_iallgatherv(const void* in, void* out, const uint64_t* counts,
                                        const uint64_t* displacements, hips_type_t type, hips_comm_t comm,
                                        hips_request_t* request);
HIPS_API hips_status_t hips_ibcast(void* buffer, uint64_t count, hips_type_t type, int root, hips_comm_t comm,
                                   hips_request_t* request);
HIPS_API hips_status_t hips_ireduce(const void* in, void* out, uint64_t count, hips_type_t type, hips_op_t op,
                                    int root, hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_igather(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                                    hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_iscatter(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                                     hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_ialltoall(const void* in, void* out, uint64_t count, hips_type_t type,
                                      hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_ibarrier(hips_comm_t comm, hips_request_t* request);
/*
 * The array of buffers is copied. Unlike the blocking call, which uses 4 MiB, it takes memory for all small
 * vectors together until the request ends.
 */
HIPS_API hips_status_t hips_iallreduce_coalesced(const hips_buffer_t* buffers, size_t num, hips_op_t op,
                                                 hips_comm_t comm, hips_request_t* request);

/*
 * Persistent requests: hips_start() starts the call, any number of times, one after the other. What depends
 * on the arguments is decided here. Local. hips_request_free() frees it.
 */
HIPS_API hips_status_t hips_allreduce_init(const void* in, void* out, uint64_t count, hips_type_t type,
                                           hips_op_t op, hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_reduce_scatter_block_init(const void* in, void* out, uint64_t count,
                                                      hips_type_t type, hips_op_t op, hips_comm_t comm,
                                                      hips_request_t* request);
HIPS_API hips_status_t hips_reduce_scatter_init(const void* in, void* out, const uint64_t* counts,
                                                hips_type_t type, hips_op_t op, hips_comm_t comm,
                                                hips_request_t* request);
HIPS_API hips_status_t hips_allgather_init(const void* in, void* out, uint64_t count, hips_type_t type,
                                           hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_allgatherv_init(const void* in, void* out, const uint64_t* counts,
                                            const uint64_t* displacements, hips_type_t type, hips_comm_t comm,
                                            hips_request_t* request);
HIPS_API hips_status_t hips_bcast_init(void* buffer, uint64_t count, hips_type_t type, int root,
                                       hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_reduce_init(const void* in, void* out, uint64_t count, hips_type_t type,
                                        hips_op_t op, int root, hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_gather_init(const void* in, void* out, uint64_t count, hips_type_t type, int root,
                                        hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_scatter_init(const void* in, void* out, uint64_t count, hips_type_t type,
                                         int root, hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_alltoall_init(const void* in, void* out, uint64_t count, hips_type_t type,
                                          hips_comm_t comm, hips_request_t* request);
HIPS_API hips_status_t hips_barrier_init(hips_comm_t comm, hips_request_t* request);

/* Starts a persistent request. HIPS_ERR_INVALID_ARGUMENT: not persistent, or still outstanding. */
HIPS_API hips_status_t hips_start(hips_request_t request);

/*
 * What becomes of a request. One rule for hips_test(), hips_testall(), hips_wait(), hips_waitall() and
 * hips_waitany():
 *
 * - They return how the call ended. A call that has ended is reported once, whether it succeeded or failed:
 * the request of a hips_i...() call is freed and its handle set to HIPS_REQUEST_NULL; a persistent request
 * stays, and may be started again or freed. *done and *index are set in both cases. The output buffers of a
 * call that failed are undefined.
 * - HIPS_ERR_INVALID_ARGUMENT (a null pointer) and HIPS_ERR_UNSUPPORTED (a child of fork()) are errors of
 *   these functions themselves: handles, *done and *index then stay as they were.
 * - A hips_i...(), hips_..._init() or hips_start() that fails has started nothing, and leaves *request as it
 *   was.
 *
 * A null request, and a persistent one that has not been started, count as complete.
 */

/*
 * *done = 1 when the call has ended, which ends the request; 0 when it is outstanding. Waits for no peer;
 * when several threads are in calls of one communicator it waits for its turn, some milliseconds at most.
 */
HIPS_API hips_status_t hips_test(hips_request_t* request, int* done);

/* As hips_test() for all of them or none: *done = 0, and no request ends, while one is outstanding. */
HIPS_API hips_status_t hips_testall(size_t count, hips_request_t* requests, int* done);

/* Blocks until the call has ended. */
HIPS_API hips_status_t hips_wait(hips_request_t* request);

/* hips_wait() for each of them; returns the first failure, and all have ended either way. */
HIPS_API hips_status_t hips_waitall(size_t count, hips_request_t* requests);

/*
 * Blocks until one of the outstanding requests has ended: *index is its place in the array. HIPS_INDEX_NONE,
 * and HIPS_OK, when none is outstanding. After HIPS_TIMEOUT it waits for the first of them as hips_wait()
 * does.
 */
#define HIPS_INDEX_NONE ((size_t)-1)
HIPS_API hips_status_t hips_waitany(size_t count, hips_request_t* requests, size_t* index);

/*
 * Ends an outstanding request of a rank that may never make the calls that the other ranks wait for, as one
 * that handles an error: waits for the call to end for HIPS_TIMEOUT or, when none is set, HIPS_DEAD_AFTER;
 * then aborts the communicator, which ends the call on every rank. When it returns the buffers are the
 * caller's again. Returns how the call ended; handles as for hips_wait().
 */
HIPS_API hips_status_t hips_request_abandon(hips_request_t* request);

/*
 * Frees a persistent request and sets *request to null. HIPS_ERR_INVALID_ARGUMENT: outstanding; wait for it
 * first. A null request is allowed.
 */
HIPS_API hips_status_t hips_request_free(hips_request_t* request);

/*
 * Registered memory: NICs read it in place, and peers write results directly into it, so that a collective on
 * it saves copies. Each rank decides for itself which memory to register; results are the same. Memory that
 * is not registered works everywhere and goes through the library's staging. An allreduce is faster when all
 * of its input, or all of its output, is in one range. TCP does not use registrations. Ranks of one node that
 * share memory read one another's memory of hips_mem_alloc() in place, in large calls and from 64 KiB of
 * memory on; other registered memory they copy.
 *
 * A range may be registered before there is a communicator and outlive them all. It costs nothing until a
 * collective first uses it; then each NIC locks its pages, once for sending and once as output, and
 * RLIMIT_MEMLOCK (ulimit -l) counts them. When a NIC refuses, one warning in the log says why, and the data
 * goes through staging.
 *
 * After a collective that failed, no peer writes into its output any more: the NIC revokes their access, and
 * breaks the connection to a peer that still tries.
 *
 * Threads: any. Shapes: any address, any size above 0; ranges do not overlap.
 */

/* Names a registration. Null: none. */
typedef struct hips_mem* hips_mem_t;

/*
 * Registers [address, address + bytes). The memory has to stay mapped until it is deregistered.
 * HIPS_ERR_INVALID_ARGUMENT: null, 0 bytes, or it overlaps memory that is registered.
 */
HIPS_API hips_status_t hips_mem_register(void* address, size_t bytes, hips_mem_t* mem);

/*
 * Ends a registration and sets *mem to null; the memory may be freed at once.
 * HIPS_ERR_INVALID_ARGUMENT: deregistered before, or a collective still runs on the memory; then nothing
 * changes.
 */
HIPS_API hips_status_t hips_mem_deregister(hips_mem_t* mem);

/*
 * `bytes` bytes of registered memory, page-aligned and zero; hips_mem_free() frees them. No page is touched,
 * so that each is placed on the NUMA node of the thread that touches it first. A child of fork() shares
 * memory of 64 KiB and more with its parent, as a rule.
 *
 * HIPS_ERR_INVALID_ARGUMENT: 0 bytes. HIPS_ERR_OUT_OF_MEMORY.
 */
HIPS_API hips_status_t hips_mem_alloc(size_t bytes, void** address);

/*
 * Frees memory of hips_mem_alloc(), by its first byte. Null is allowed.
 * HIPS_ERR_INVALID_ARGUMENT: not from hips_mem_alloc(), freed before, or a collective still runs on it; then
 * nothing changes.
 */
HIPS_API hips_status_t hips_mem_free(void* address);

/* The cause of the calling thread's last failed call; "" when there was none. Never null. */
HIPS_API const char* hips_last_error(void);

/* The largest thing that an error has broken, and that has to be made again. */
typedef enum {
  HIPS_SCOPE_OPERATION = 0, /* the call alone */
  HIPS_SCOPE_LINK = 1,
  HIPS_SCOPE_PEER = 2,
  HIPS_SCOPE_COMMUNICATOR = 3, /* destroy it, and make another of the ranks that are left */
  HIPS_SCOPE_PROCESS = 4
} hips_scope_t;

/* All that is known of an error; hips_last_error() is its `text`. */
typedef struct {
  size_t struct_size; /* sizeof(hips_error_info_t): lets the struct grow */
  hips_status_t code; /* what the call returned; HIPS_OK when no call has failed */
  int rank;           /* the rank at fault in the communicator, -1 when no rank is */
  hips_scope_t scope;
  int sys_errno;    /* errno, or the completion status of a NIC; 0 when neither applies */
  const char* text; /* one sentence, never null; valid until the thread's next call that fails */
  int rail;         /* the NIC at fault, numbered from 0; -1 when none is */
} hips_error_info_t;

#define HIPS_ERROR_INFO_INIT \
  { sizeof(hips_error_info_t), HIPS_OK, -1, HIPS_SCOPE_OPERATION, 0, "", -1 }

/*
 * Sets *info to the calling thread's last failed call. Begin with HIPS_ERROR_INFO_INIT: members that this
 * library does not know keep their values. HIPS_ERR_INVALID_ARGUMENT: info is null, or its struct_size is
 * smaller than the first version of the struct; *info and the last error then stay as they are.
 *
 *     hips_error_info_t info = HIPS_ERROR_INFO_INIT;
 *     if (hips_allreduce(...) == HIPS_ERR_PEER_LOST && hips_last_error_info(&info) == HIPS_OK)
 *       fprintf(stderr, "lost rank %d: %s\n", info.rank, info.text);
 */
HIPS_API hips_status_t hips_last_error_info(hips_error_info_t* info);
/* "peer lost" for HIPS_ERR_PEER_LOST, ... */
HIPS_API const char* hips_status_string(hips_status_t status);
HIPS_API const char* hips_version(void);

#ifdef __cplusplus
}
#endif

#endif
