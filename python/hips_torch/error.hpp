#pragma once

#include <stdexcept>
#include <string>

#include <hips/hips.h>

namespace hips::torch_backend {

/// An error of HiPS. Python sees hips_torch.HipsError, a RuntimeError with `code` ("peer lost") and `rank`.
class HipsError : public std::runtime_error {
 public:
  HipsError(hips_status_t code, int rank, const char* text) : std::runtime_error(text), code_(code), rank_(rank) {}
  /// The calling thread's last failed call.
  static HipsError last() {
    hips_error_info_t info = HIPS_ERROR_INFO_INIT;
    (void)hips_last_error_info(&info);
    return {info.code, info.rank, info.text};
  }

  [[nodiscard]] const char* code() const { return hips_status_string(code_); }
  [[nodiscard]] hips_status_t status() const { return code_; }
  /// The rank at fault in the process group; -1 where none is.
  [[nodiscard]] int rank() const { return rank_; }

 private:
  hips_status_t code_;
  int rank_;
};

inline void throw_if_failed(hips_status_t status) {
  if (status != HIPS_OK) throw HipsError::last();
}

}  // namespace hips::torch_backend
