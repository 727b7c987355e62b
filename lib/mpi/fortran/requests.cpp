// The functions of Fortran that start and complete requests: of all bindings for Open MPI, of mpi_f08 for
// MPICH, whose other bindings call the functions of C. Where none of the requests is ours, native MPI's own
// wrapper gets the arguments unchanged.

#include <mpi.h>

#include <tuple>
#include <vector>

#include "lib/mpi/fortran/arguments.hpp"
#include "lib/mpi/requests/request_calls.hpp"
#include "lib/mpi/requests/request_entry.hpp"
#include "lib/mpi/requests/request_table.hpp"

// Only a compiler of Fortran declares them.
#pragma GCC diagnostic ignored "-Wmissing-declarations"

namespace mpi = hips::mpi;

namespace {

constexpr int kStatusSize = sizeof(MPI_Status) / sizeof(MPI_Fint);

bool any_of(int length, const MPI_Fint* requests) {
  if (!mpi::RequestTable::any()) return false;
  for (int i = 0; i < length; ++i)
    if (mpi::RequestTable::is_ours_in_fortran(requests[i])) return true;
  return false;
}

/// What the arguments of one call need to know of each other.
struct CallState {
  int length;             ///< of the array of requests; 1 for a single one
  int num_statuses = -1;  ///< statuses that are valid afterwards; -1: all
  bool is_done = true;    ///< statuses are valid
};

/// What an argument is made of.
template <typename Value>
struct Passed {
  Value* value;
  const CallState& state;
};

/// From 1, and MPI_UNDEFINED as it is.
MPI_Fint index_to_fortran(int index) {
  return index == MPI_UNDEFINED ? index : index + 1;
}

/// Null for MPI_STATUS_IGNORE and MPI_STATUSES_IGNORE.
MPI_Fint* unless_ignored(MPI_Fint* statuses) {
  return mpi::fortran_sentinel(statuses) == mpi::Sentinel::kStatusIgnore ? nullptr : statuses;
}

/// A class for each argument of signatures.def. It converts the argument when it is made, gives it to the
/// function of C by c(), and converts it back in store(), which is called after the function and in the order
/// of arguments.
struct ArgumentOfFortran {
  class length {
   public:
    explicit length(Passed<const MPI_Fint> passed) : value_(*passed.value) {}
    [[nodiscard]] int c() const { return value_; }
    void store(CallState&) {}

   private:
    int value_;
  };

  /// Fortran gets changed handles when this is destroyed, also after an exception.
  class requests {
   public:
    explicit requests(Passed<MPI_Fint> passed) : values_(passed.value) {
      for (int i = 0; i < passed.state.length; ++i) of_c_.push_back(mpi::request_to_c(values_[i]));
    }
    ~requests() {
      for (std::size_t i = 0; i < of_c_.size(); ++i) values_[i] = mpi::request_to_fortran(of_c_[i]);
    }
    requests(const requests&) = delete;
    requests& operator=(const requests&) = delete;
    MPI_Request* c() { return of_c_.data(); }
    void store(CallState&) {}

   private:
    MPI_Fint* values_;
    std::vector<MPI_Request> of_c_;
  };
  using request = requests;

  class handle {
   public:
    explicit handle(Passed<MPI_Fint> passed) : of_c_(mpi::request_to_c(*passed.value)) {}
    [[nodiscard]] MPI_Request c() const { return of_c_; }
    void store(CallState&) {}

   private:
    MPI_Request of_c_;
  };

  class index {
   public:
    explicit index(Passed<MPI_Fint> passed) : value_(passed.value) {}
    int* c() { return &of_c_; }
    void store(CallState&) { *value_ = index_to_fortran(of_c_); }

   private:
    MPI_Fint* value_;
    int of_c_ = MPI_UNDEFINED;
  };

  class flag {
   public:
    explicit flag(Passed<MPI_Fint> passed) : value_(passed.value) {}
    int* c() { return &of_c_; }
    void store(CallState& state) {
      *value_ = mpi::logical_to_fortran(of_c_);
      state.is_done = of_c_ != 0;
    }

   private:
    MPI_Fint* value_;
    int of_c_ = 0;
  };

  class num_done {
   public:
    explicit num_done(Passed<MPI_Fint> passed) : value_(passed.value) {
      // Stays 0 where the call fails before a request is completed.
      *value_ = 0;
    }
    int* c() { return value_; }
    void store(CallState& state) { state.num_statuses = *value_ == MPI_UNDEFINED ? 0 : *value_; }

   private:
    MPI_Fint* value_;
  };

  class indices {
   public:
    explicit indices(Passed<MPI_Fint> passed) : values_(passed.value) {}
    int* c() { return values_; }
    void store(CallState& state) {
      for (int i = 0; i < state.num_statuses; ++i) values_[i] = index_to_fortran(values_[i]);
    }

   private:
    MPI_Fint* values_;
  };

  /// One status, whose MPI_ERROR may have to stay as it is.
  class status {
   public:
    explicit status(Passed<MPI_Fint> passed) : value_(unless_ignored(passed.value)) {
      if (value_) mpi::native_mpi()->Status_f2c(value_, &of_c_);
    }
    MPI_Status* c() { return value_ ? &of_c_ : MPI_STATUS_IGNORE; }
    void store(CallState& state) {
      if (value_ && state.is_done) mpi::native_mpi()->Status_c2f(&of_c_, value_);
    }

   private:
    MPI_Fint* value_;
    MPI_Status of_c_{};
  };

  class statuses {
   public:
    explicit statuses(Passed<MPI_Fint> passed) : values_(unless_ignored(passed.value)) {
      if (values_) of_c_.resize(static_cast<std::size_t>(passed.state.length));
    }
    MPI_Status* c() { return values_ ? of_c_.data() : MPI_STATUSES_IGNORE; }
    void store(CallState& state) {
      if (!values_ || !state.is_done) return;
      const int num = state.num_statuses < 0 ? state.length : state.num_statuses;
      for (int i = 0; i < num; ++i)
        mpi::native_mpi()->Status_c2f(&of_c_[static_cast<std::size_t>(i)], values_ + i * kStatusSize);
    }

   private:
    MPI_Fint* values_;
    std::vector<MPI_Status> of_c_;
  };
};

/// Calls `function` of C with arguments of Fortran, among them `length` requests.
template <typename... Arguments, typename Function, typename... Values>
void call_with(const Function& function, int length, MPI_Fint* ierror, Values*... values) {
  const int code = mpi::catching([&] {
    CallState state{.length = length};
    std::tuple<Arguments...> arguments(Passed<Values>{values, state}...);
    return std::apply(
        [&](Arguments&... of_fortran) {
          const int returned = function(of_fortran.c()...);
          (of_fortran.store(state), ...);
          return returned;
        },
        arguments);
  });
  if (ierror) *ierror = code;
}

}  // namespace

extern "C" {

// The requests of a function, by its first argument.
#define HIPS_LENGTH_OF_request 1
#define HIPS_LENGTH_OF_handle 1
#define HIPS_LENGTH_OF_length *length
#define HIPS_REQUESTS_OF_request request
#define HIPS_REQUESTS_OF_handle handle
#define HIPS_REQUESTS_OF_length requests

#define HIPS_CLASS(name) ArgumentOfFortran::name
#define HIPS_REQUEST_FUNCTION(Name, name, NAME, first, ...)                                                 \
  HIPS_API void HIPS_FORTRAN(name)(HIPS_MAP(HIPS_PARAMETER_OF_FORTRAN, first __VA_OPT__(, ) __VA_ARGS__),   \
                                   MPI_Fint * ierror) {                                                     \
    if (!any_of(HIPS_LENGTH_OF_##first, HIPS_REQUESTS_OF_##first)) {                                        \
      static constinit mpi::NativeFortran<decltype(HIPS_FORTRAN(name))> next;                               \
      return next.get(HIPS_NATIVE_FORTRAN(name))(HIPS_MAP(HIPS_ARGUMENT, first __VA_OPT__(, ) __VA_ARGS__), \
                                                 ierror);                                                   \
    }                                                                                                       \
    call_with<HIPS_MAP(HIPS_CLASS, first __VA_OPT__(, ) __VA_ARGS__)>(                                      \
        mpi::name, HIPS_LENGTH_OF_##first, ierror,                                                          \
        HIPS_MAP(HIPS_ARGUMENT, first __VA_OPT__(, ) __VA_ARGS__));                                         \
  }                                                                                                         \
  HIPS_FORTRAN_NAMES(mpi_##name, MPI_##NAME, MPI_##Name)
#include "lib/mpi/signatures.def"
#undef HIPS_REQUESTS_OF_request
#undef HIPS_REQUESTS_OF_handle
#undef HIPS_REQUESTS_OF_length
}
