/*
 * HiPS: tables of rows by key, for models that are sparse: embeddings, factorizations, graphs. The C API.
 *
 * All ranks of a communicator pull rows and push changes to them. A row is on one node at a time, in memory that all ranks of the
 * node reach in a fraction of a microsecond; hips_ps_localize() brings rows to the node that is going to use them. Dense
 * models are better served by hips_allreduce().
 *
 * Guarantees, while rows move:
 * - No push is lost, and none is done twice.
 * - Calls that are waited for before the next are linearizable, key by key.
 * - Calls of a rank on one key take place in the order of their start, outstanding ones included. Keys of one call are used in
 *   any order.
 *
 * Source: Lapse (Renz-Wieland et al., VLDB 2020).
 */
#ifndef HIPS_PS_H
#define HIPS_PS_H

#include <hips/hips.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hips_ps_table* hips_ps_table_t;

/*
 * update: a push does row = pushed op row: HIPS_SUM, another op but HIPS_AVG, or a function of hips_op_create(), then with
 * HIPS_BYTES(n), too; it runs on whatever thread uses the row, on several at once for several rows. first_row: of a key that nobody has changed; null: zeros. rows_per_node: that a node may have at a time, at most
 * 2^32 - 2; 0: num_keys; it costs address space, no memory. staleness: of hips_ps_advance_clock(). replicas_per_node: copies of
 * rows of other nodes that a node may have, see hips_ps_intent(); only with HIPS_SUM; 0: none.
 */
typedef struct {
  size_t struct_size; /* sizeof(hips_ps_config_t) */
  uint64_t num_keys;  /* keys are 0 to num_keys - 1 */
  hips_type_t type;   /* of the elements of a row */
  uint32_t count;     /* elements of a row; a row has 1 MiB at most */
  hips_op_t update;
  const void* first_row;
  uint64_t rows_per_node;
  uint64_t staleness;
  uint64_t replicas_per_node;
} hips_ps_config_t;

#define HIPS_PS_CONFIG_INIT \
  { sizeof(hips_ps_config_t), 0, HIPS_FLOAT32, 1, HIPS_SUM, 0, 0, 0, 0 }

/*
 * Makes a table; all ranks pass the same. Collective over `comm`, which may be destroyed before the table. Each key begins on
 * the node that a hash of it names. Cost: four small exchanges; connections between each rank and one rank of
 * each node, and a thread on that one, which sleeps while there is nothing to serve. A row takes its bytes and at most 32 on the
 * node that has it, from its first use on; other nodes keep nothing for it but, on one, the number of the node that has it.
 *
 * HIPS_ERR_INVALID_ARGUMENT, HIPS_ERR_MISMATCH: config; says what and on which rank. HIPS_ERR_UNSUPPORTED: no transport between
 * two ranks. On all ranks alike, but for null arguments and struct_size, which this rank finds before it talks to others.
 */
HIPS_API hips_status_t hips_ps_table_create(hips_comm_t comm, const hips_ps_config_t* config,
                                            hips_ps_table_t* table);

/*
 * Waits until all ranks call it, then frees the table. Collective. No call may be outstanding. Null is allowed. The handle is freed
 * whatever is returned, but in a child of fork(), where nothing is. On a failed table it waits for nobody, and returns the failure.
 */
HIPS_API hips_status_t hips_ps_table_destroy(hips_ps_table_t table);

/*
 * Ends the calls of all ranks on the table and its communicator with HIPS_ERR_ABORTED, this rank and `text` (hips_comm_abort()),
 * and ends the handle. For a rank that gives up: waits for nobody's call. Calls of other threads that wait end with that error; none
 * may begin. Null is allowed. Rows, connections and the serving thread stay until the communicator is destroyed: do that once the
 * calls of other threads have ended; where it was destroyed before, they stay until the process ends.
 */
HIPS_API hips_status_t hips_ps_table_abort(hips_ps_table_t table, const char* text);

/*
 * After a rank has died: makes a table on `comm`, of ranks that are left of those of `failed` (hips_comm_shrink()), with what is
 * left of its rows. Collective over `comm`; each rank passes its own handle of `failed`, which no thread uses; it has failed then,
 * on all ranks of its communicator, and is still to be destroyed. Rows stay on the nodes that have them. In place of a row that is
 * gone with its node comes a replica that a node has (hips_ps_intent()), else the first row: it is lost. *num_lost, if not null,
 * is how many are, at most, the same on all ranks: where the home of keys is gone, HiPS does not know which of them had been used, and counts each that
 * is nowhere.
 *
 * A push that had ended before the failure is in its row, unless that is lost or a replica stands in for it, which lacks what others
 * have pushed since it was refreshed; a push to a replica may be missing if it had not reached the owner, which it does by the end of
 * its clock. A row that a rank was pushing to when it was killed may be half changed. Clocks begin at 0, and intents are to be given
 * again. A node may have rows_per_node times the old number of nodes of rows.
 *
 * Cost: localizing and setting all rows, and the rows twice until `failed` is destroyed.
 *
 * HIPS_ERR_PEER_LOST, on all ranks: another rank has died; shrink again, and call it with the same `failed`.
 * HIPS_ERR_INVALID_ARGUMENT: ranks pass tables that they did not make together. Errors else as hips_ps_table_create().
 */
HIPS_API hips_status_t hips_ps_table_recover(hips_comm_t comm, hips_ps_table_t failed, hips_ps_table_t* table,
                                             uint64_t* num_lost);

/*
 * rows[i] = row of keys[i], for `num` keys in any order; rows lie one after the other. Keys may repeat. Blocks until all rows are
 * there.
 *
 * Cost: a row of this node about 0.1 us; of another one a message to the node that has it and back, if this
 * rank has heard from that node before, else by way of the key's first node. Rows of one call travel together.
 *
 * HIPS_ERR_INVALID_ARGUMENT: a key is out of range, a null argument, or more than 2^32 - 1 keys; HIPS_ERR_UNSUPPORTED: a child of
 * fork(); HIPS_ERR_OUT_OF_MEMORY with scope HIPS_SCOPE_OPERATION: nothing took place. Any other error has failed the table
 * for good, and its communicator on all ranks: a rank died (HIPS_ERR_PEER_LOST), a node has rows_per_node rows
 * (HIPS_ERR_OUT_OF_MEMORY), HIPS_TIMEOUT passed.
 *
 * Threads: any number at once, for all calls of a table but create, destroy and hips_ps_advance_clock().
 */
HIPS_API hips_status_t hips_ps_pull(hips_ps_table_t table, const uint64_t* keys, size_t num, void* rows);
/* row of keys[i] = rows[i] op row; blocks until all are changed. Errors and threads as hips_ps_pull(). */
HIPS_API hips_status_t hips_ps_push(hips_ps_table_t table, const uint64_t* keys, size_t num,
                                    const void* rows);
/* row of keys[i] = rows[i]. */
HIPS_API hips_status_t hips_ps_set(hips_ps_table_t table, const uint64_t* keys, size_t num, const void* rows);
/*
 * Brings the rows to this node. Blocks until each of them has been here; another node may have taken one away again.
 * Cost: three messages, one after the other (home, owner, this node); two where the home is the owner, and one more on
 * ranks that do not serve.
 */
HIPS_API hips_status_t hips_ps_localize(hips_ps_table_t table, const uint64_t* keys, size_t num);
/*
 * As hips_ps_pull(), of the rows that this node has: here[i] is 1 where rows[i] was copied, else 0. Sends nothing. A key
 * with an outstanding call of this rank counts as not here, and so do a few others meanwhile, and a key that no call has used.
 */
HIPS_API hips_status_t hips_ps_pull_if_local(hips_ps_table_t table, const uint64_t* keys, size_t num,
                                             void* rows, unsigned char* here);

/*
 * Says that this rank is going to pull or push these rows while its clock, the number of its calls of hips_ps_advance_clock(), is
 * in [start, end); from two clocks before `start` on the table prepares for it, in the background: a row for which only one node
 * has such an intent moves to that node, as by hips_ps_localize(). It is a hint: without it, or with a wrong one, all results are
 * the same. A rank that does not count clocks is in clock 0. keys[i]: as of hips_ps_pull(), copied.
 *
 * With replicas_per_node, each node gets a copy of a row for which several have intents. Its ranks pull and push the copy; what
 * they push reaches the owner, and the copies of others, by the end of their clock. So such a pull sees all pushes of its own node, and of
 * the others those of clocks that all ranks have ended, at least; it never sees less than an earlier one. hips_ps_set() and hips_ps_localize() of
 * such a row take its copies back first.
 *
 * Cost: returns at once. A message to the serving rank of the node, one to each home of keys, and one to each owner of rows that
 * move; keys of one call travel together. About 100 bytes for a key on its node, and on its home, while the intent lasts.
 *
 * HIPS_ERR_INVALID_ARGUMENT: a key is out of range, end < start, or a null argument. Errors else, and threads, as hips_ps_pull().
 */
HIPS_API hips_status_t hips_ps_intent(hips_ps_table_t table, const uint64_t* keys, size_t num, uint64_t start,
                                      uint64_t end);

/*
 * Ends a clock of this rank: waits for its outstanding pulls, pushes and sets, then until every other rank has ended at least as many clocks less
 * `staleness`. So the fastest rank is at most `staleness` clocks ahead of the slowest (stale synchronous parallel), and a pull sees
 * all pushes of clocks that are further back. With 0 all ranks end each clock together; programs that never call it are
 * asynchronous. One thread of a rank at a time.
 */
HIPS_API hips_status_t hips_ps_advance_clock(hips_ps_table_t table);

/*
 * The same without blocking, but that they wait while more than 65,536 rows of this rank are outstanding. *request is HIPS_REQUEST_NULL where the call has ended already, as those on rows of this node do; else
 * hips_wait(), hips_test() and their like end it. `keys` and pushed rows are copied; the rows of a pull belong to the
 * request until it has ended.
 */
HIPS_API hips_status_t hips_ps_ipull(hips_ps_table_t table, const uint64_t* keys, size_t num, void* rows,
                                     hips_request_t* request);
HIPS_API hips_status_t hips_ps_ipush(hips_ps_table_t table, const uint64_t* keys, size_t num,
                                     const void* rows, hips_request_t* request);
HIPS_API hips_status_t hips_ps_iset(hips_ps_table_t table, const uint64_t* keys, size_t num, const void* rows,
                                    hips_request_t* request);
HIPS_API hips_status_t hips_ps_ilocalize(hips_ps_table_t table, const uint64_t* keys, size_t num,
                                         hips_request_t* request);

#ifdef __cplusplus
}
#endif

#endif /* HIPS_PS_H */
