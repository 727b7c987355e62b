#pragma once

/// Marks what a program that links libhips.so may use; everything else in it is hidden.
#if defined(__GNUC__)
#define HIPS_EXPORT __attribute__((visibility("default")))
#else
#define HIPS_EXPORT
#endif
