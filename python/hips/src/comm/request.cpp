#include "python/hips/src/comm/request.hpp"

#include "python/hips/src/comm/error.hpp"
#include "python/hips/src/comm/without_lock.hpp"

namespace py = pybind11;

namespace hips::python {
namespace {

std::vector<hips_request_t> handles_of(const std::vector<Request*>& requests, hips_request_t Request::*member) {
  std::vector<hips_request_t> handles;
  handles.reserve(requests.size());
  for (const Request* const request : requests) handles.push_back(request->*member);
  return handles;
}

}  // namespace

Request::~Request() {
  if (request_ == nullptr) return;
  (void)without_lock([&] { return hips_request_abandon(&request_); });
  (void)hips_request_free(&request_);
}

void Request::note_end() {
  if (request_ == nullptr && !is_persistent_) arrays_.clear();
}

void Request::start() {
  throw_if_failed(hips_start(request_));
}

bool Request::test() {
  int done = 0;
  const hips_status_t status = without_lock([&] { return hips_test(&request_, &done); });
  note_end();
  throw_if_failed(status);
  return done != 0;
}

py::object Request::wait() {
  const hips_status_t status = without_lock([&] { return hips_wait(&request_); });
  note_end();
  throw_if_failed(status);
  return result_;
}

void Request::abandon() {
  (void)without_lock([&] { return hips_request_abandon(&request_); });
  note_end();
}

void Request::wait_all(const std::vector<Request*>& requests) {
  std::vector<hips_request_t> handles = handles_of(requests, &Request::request_);
  const hips_status_t status = without_lock([&] { return hips_waitall(handles.size(), handles.data()); });
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i]->request_ = handles[i];
    requests[i]->note_end();
  }
  throw_if_failed(status);
}

std::optional<std::size_t> Request::wait_any(const std::vector<Request*>& requests) {
  std::vector<hips_request_t> handles = handles_of(requests, &Request::request_);
  std::size_t index = HIPS_INDEX_NONE;
  const hips_status_t status = without_lock([&] { return hips_waitany(handles.size(), handles.data(), &index); });
  for (std::size_t i = 0; i < requests.size(); ++i) {
    requests[i]->request_ = handles[i];
    requests[i]->note_end();
  }
  throw_if_failed(status);
  if (index == HIPS_INDEX_NONE) return std::nullopt;
  return index;
}

}  // namespace hips::python
