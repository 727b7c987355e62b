/*
 * A slow network for HiPS over TCP, for preloading: each message that its transport sends takes
 * SLOW_HIPS_NS_PER_BYTE for each byte. Native MPI, which uses shared memory inside a node, is not slowed
 * down.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

typedef ssize_t sendmsg_t(int, const struct msghdr*, int);

ssize_t sendmsg(int fd, const struct msghdr* message, int flags) {
  sendmsg_t* next = NULL;
  *(void**)&next = dlsym(RTLD_NEXT, "sendmsg");
  const ssize_t sent = next(fd, message, flags);
  const int of_hips = (flags & MSG_NOSIGNAL) && (flags & MSG_DONTWAIT);
  if (of_hips && sent > 0) {
    const int saved = errno;
    usleep((useconds_t)((double)sent * atof(getenv("SLOW_HIPS_NS_PER_BYTE")) / 1000));
    errno = saved;
  }
  return sent;
}
