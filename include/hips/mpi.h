/*
 * Creates a HiPS communicator from an MPI communicator. Header only: it compiles against the MPI of the
 * program, so HiPS itself depends on no MPI ABI. C and C++.
 */
#ifndef HIPS_MPI_H
#define HIPS_MPI_H

#include <limits.h>
#include <mpi.h>
#include <stddef.h>

#include <hips/hips.h>

#ifdef __cplusplus
extern "C" {
#endif

/* hips_bootstrap_t::allgather; `context` points to the MPI_Comm. */
static inline int hips_mpi_allgather(void* context, const void* send, void* recv, size_t bytes) {
  if (bytes > INT_MAX) return MPI_ERR_COUNT;
  return MPI_Allgather((void*)send, (int)bytes, MPI_BYTE, recv, (int)bytes, MPI_BYTE, *(MPI_Comm*)context);
}

/* hips_bootstrap_t::progress: lets MPI make progress while HiPS waits. Ignores `context`. */
static inline void hips_mpi_progress(void* context) {
  int flag = 0;
  (void)context;
  if (MPI_Finalized(&flag) != MPI_SUCCESS || flag) return;
#ifdef MPICH_VERSION
  /* In MPICH a probe of MPI_COMM_SELF makes no progress on messages of other ranks. */
  (void)MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
#else
  (void)MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE);
#endif
}

/*
 * Creates a communicator of all ranks of `mpi`, an intra-communicator, with the same ranks. Collective over
 * `mpi`, which is used only until this returns. `config` may be null. Later calls on `comm` may call
 * MPI_Iprobe on the calling thread while they wait, so MPI's thread level has to allow calls from it.
 */
static inline hips_status_t hips_comm_create_mpi(MPI_Comm mpi, const hips_comm_config_t* config,
                                                 hips_comm_t* comm) {
  hips_bootstrap_t bootstrap;
  bootstrap.struct_size = sizeof bootstrap;
  bootstrap.allgather = hips_mpi_allgather;
  bootstrap.context = &mpi;
  bootstrap.progress = hips_mpi_progress;
  if (MPI_Comm_rank(mpi, &bootstrap.rank) != MPI_SUCCESS ||
      MPI_Comm_size(mpi, &bootstrap.size) != MPI_SUCCESS)
    return HIPS_ERR_SYSTEM;
  return hips_comm_create(config, &bootstrap, comm);
}

#ifdef __cplusplus
}
#endif

#endif
