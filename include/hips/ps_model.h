/*
 * HiPS: a dense model that is trained asynchronously. The C API.
 *
 * All ranks of a communicator fetch the values of one vector and push updates, which are added to it, without waiting for each
 * other. It lies in shards on several nodes. The version of a shard is the number of updates that it contains; the delay of an
 * update is the version that it is applied to less the one that its rank had fetched. No update is applied with a delay above
 * delay_max: it is handed back, if possible before it is sent.
 *
 * Updates that wait for the same shard are ordered by the rates of the nodes, the shortest first, and travel as one sum from node
 * to node; values pass from node to node, too. So a shard's NIC sends and receives less than its workers do.
 *
 * Where all ranks take equal steps, hips_allreduce() is faster and simpler.
 *
 * Guarantees:
 * - Each part of an update is applied once, or handed back. Values are those of a version: all its updates and no others.
 * - A fetch sees everything that was applied before it began.
 * - With replicas: when a node with a shard is gone, the applied updates that are gone with it change the shard by a norm of at most
 *   divergence_max, but for rounding: the replica adds the same updates, in another order.
 *
 * Source: MLfabric (BML 2018).
 */
#ifndef HIPS_PS_MODEL_H
#define HIPS_PS_MODEL_H

#include <hips/hips.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hips_ps_model* hips_ps_model_t;

/*
 * first: `count` elements that the model begins with, used while hips_ps_model_create() runs, on the lowest rank of each node with a
 * shard only; null there: zeros. num_shards: shard s lies on node s; 0: one on each node, where nothing is scheduled; never more than nodes. delay_max: UINT64_MAX: no
 * limit. sends_at_once: 1: updates and values are not scheduled, as they are not with shards below 64 KiB or on more than half of the
 * nodes. divergence_max: negative: no replicas. Else each shard has a replica on another node, for hips_ps_model_recover(), which may lack
 * updates of so much: each group of updates that travelled as one sum, or single update, counts with its Euclidean norm. Before the
 * shard applies a group that would exceed it, missing ones are sent to the replica; with 0 it has everything first. `first` is then
 * for the nodes with replicas, too.
 */
typedef struct {
  size_t struct_size; /* sizeof(hips_ps_model_config_t) */
  uint64_t count;     /* elements of the model */
  hips_type_t type;   /* one that can be added */
  const void* first;
  uint32_t num_shards;
  uint64_t delay_max;
  int sends_at_once;
  double divergence_max;
} hips_ps_model_config_t;

#define HIPS_PS_MODEL_CONFIG_INIT \
  { sizeof(hips_ps_model_config_t), 0, HIPS_FLOAT32, 0, 0, UINT64_MAX, 0, -1 }

/*
 * Makes a model; all ranks pass the same, but for `first`. Collective over `comm`, which may be destroyed before the model. Cost: four
 * small exchanges; connections between each rank and one rank of each node, and a thread on that one, which sleeps while there is
 * nothing to do; 1 MiB of buffers for each pair of ranks that talk. Memory: the shard of a node, a copy of each version that is being
 * sent, a vector for each update or group that arrives, two for each outstanding push of a rank, and values that pass. With replicas
 * one more shard and a vector for each node that is sending to it, up to 8 vectors for each shard on a node that sends updates, and as much
 * more to send as the groups that divergence_max does not let wait; a node sends its groups to a replica as one sum.
 *
 * HIPS_ERR_INVALID_ARGUMENT, HIPS_ERR_MISMATCH: config; says what and on which rank. HIPS_ERR_UNSUPPORTED: no transport between
 * two ranks, HIPS_ERR_OUT_OF_MEMORY. On all ranks alike, but for null arguments and struct_size: then other ranks wait.
 */
HIPS_API hips_status_t hips_ps_model_create(hips_comm_t comm, const hips_ps_model_config_t* config,
                                            hips_ps_model_t* model);

/*
 * After a rank has died: makes a model on `comm`, of ranks that are left of those of `failed` (hips_comm_shrink()), with its values.
 * Collective over `comm`; each rank passes its own handle of `failed`, which no thread uses; it has failed then, on all ranks of its
 * communicator, and is still to be destroyed.
 *
 * A shard whose node is gone comes from its replica and from what other nodes have sent to the shard and not to the replica. So what is
 * missing are groups of updates that a node which is gone has sent to the shard, such as those of the shard's node itself, in
 * which updates of others may have travelled; of those at most the norm divergence_max. A node is gone when its lowest rank is, which
 * keeps all that. An update whose call has ended with the failure may be in the values. Versions begin at 0.
 *
 * Cost: a broadcast or an allreduce of each shard, and memory for the whole model on each rank meanwhile.
 *
 * HIPS_ERR_PEER_LOST: another rank has died meanwhile (shrink again), or a shard is lost: its node is gone, and so is the one of its
 * replica, if it has one; names the elements. HIPS_ERR_INVALID_ARGUMENT: ranks pass models that they did not make together. Errors
 * else as hips_ps_model_create().
 */
HIPS_API hips_status_t hips_ps_model_recover(hips_comm_t comm, hips_ps_model_t failed,
                                             hips_ps_model_t* model);

/*
 * Waits until all ranks call it, then frees the model. Collective. No call may be outstanding. Null is allowed. The handle is freed
 * whatever is returned. On a failed model it waits for nobody, and returns the failure.
 */
HIPS_API hips_status_t hips_ps_model_destroy(hips_ps_model_t model);

/*
 * Ends the calls of all ranks on the model and its communicator with HIPS_ERR_ABORTED, this rank and `text` (hips_comm_abort()),
 * and frees the model. For a rank that gives up: waits for nobody's call. Calls of other threads that wait end with that error; none
 * may begin. Null is allowed.
 */
HIPS_API hips_status_t hips_ps_model_abort(hips_ps_model_t model, const char* text);

HIPS_API hips_status_t hips_ps_model_num_shards(hips_ps_model_t model, uint32_t* num_shards);
/* The elements [*begin, *begin + *length) are shard `shard`. */
HIPS_API hips_status_t hips_ps_model_shard(hips_ps_model_t model, uint32_t shard, uint64_t* begin,
                                           uint64_t* length);

/*
 * values[0, count) = the model. Each shard is of one version; shards may differ. Blocks.
 *
 * HIPS_ERR_INVALID_ARGUMENT: a null argument; HIPS_ERR_UNSUPPORTED: a child of fork(); HIPS_ERR_OUT_OF_MEMORY with scope
 * HIPS_SCOPE_OPERATION: nothing took place. Any other error has failed the model for good, and its communicator on all ranks: a rank died (HIPS_ERR_PEER_LOST),
 * HIPS_TIMEOUT passed.
 *
 * Threads: any number at once, for all calls of a model but create and destroy.
 */
HIPS_API hips_status_t hips_ps_model_fetch(hips_ps_model_t model, void* values);
/*
 * model += update[0, count). The update was computed from the values of the last fetch of this rank that has ended in a call of it, such as
 * hips_wait(); of the first values, if there is none. Blocks until each part was applied or is handed back; applied[s]: 1, or 0 where the part of shard s is handed
 * back: not applied, and the rank may add it to its next one. Null: the caller does not want to know. Versions are those of the rank,
 * not of a thread: where several threads of a rank fetch, an update counts as computed from the last fetch of any.
 */
HIPS_API hips_status_t hips_ps_model_push(hips_ps_model_t model, const void* update, unsigned char* applied);
/*
 * hips_ps_model_push() and then hips_ps_model_fetch(), faster: a shard is fetched as soon as its part of the update has ended.
 * `update` may be `values`.
 */
HIPS_API hips_status_t hips_ps_model_push_fetch(hips_ps_model_t model, const void* update,
                                                unsigned char* applied, void* values);

/*
 * The same without blocking; hips_wait(), hips_test() and their like end them. All buffers belong to the request until then. On a
 * rank that does not serve its node they make progress during calls of the rank.
 */
HIPS_API hips_status_t hips_ps_model_ifetch(hips_ps_model_t model, void* values, hips_request_t* request);
HIPS_API hips_status_t hips_ps_model_ipush(hips_ps_model_t model, const void* update, unsigned char* applied,
                                           hips_request_t* request);
HIPS_API hips_status_t hips_ps_model_ipush_fetch(hips_ps_model_t model, const void* update,
                                                 unsigned char* applied, void* values,
                                                 hips_request_t* request);

#ifdef __cplusplus
}
#endif

#endif /* HIPS_PS_MODEL_H */
