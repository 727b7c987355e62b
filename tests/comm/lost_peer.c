/* A C program that loses a peer, for communicator_failure_test.cpp. */
#include <hips/hips.h>
#include <stdio.h>
#include <string.h>

int hips_test_lose_a_peer(void (*ready)(void*), void* context, char* text, size_t bytes);

int hips_test_lose_a_peer(void (*ready)(void*), void* context, char* text, size_t bytes) {
  hips_comm_t comm;
  hips_error_info_t info = HIPS_ERROR_INFO_INIT;
  float value = 1;
  int again;
  if (hips_comm_create(NULL, NULL, &comm) != HIPS_OK) return 1;
  if (hips_allreduce(HIPS_IN_PLACE, &value, 1, HIPS_FLOAT32, HIPS_SUM, comm) != HIPS_OK) return 2;
  ready(context);
  while (hips_allreduce(HIPS_IN_PLACE, &value, 1, HIPS_FLOAT32, HIPS_SUM, comm) == HIPS_OK) continue;
  for (again = 0; again < 2; ++again) {
    if (hips_last_error_info(&info) != HIPS_OK || strcmp(info.text, hips_last_error()) != 0) return 3;
    /* Asking wrongly changes neither the answer nor the last error. */
    if (hips_last_error_info(NULL) != HIPS_ERR_INVALID_ARGUMENT) return 4;
    info.struct_size = sizeof(size_t);
    if (hips_last_error_info(&info) != HIPS_ERR_INVALID_ARGUMENT) return 5;
    info.struct_size = sizeof info;
  }
  snprintf(text, bytes, "%s: rank %d, scope %d, errno %d", hips_status_string(info.code), info.rank,
           (int)info.scope, info.sys_errno);
  hips_comm_destroy(comm);
  return 0;
}
