#include "lib/mpi/fortran/arguments.hpp"

#include "lib/mpi/requests/request_table.hpp"

namespace hips::mpi {

const void* FromFortran::buffer_of(const void* buffer) {
  switch (fortran_sentinel(buffer)) {
    case Sentinel::kInPlace:
      return MPI_IN_PLACE;
    case Sentinel::kBottom:
      return MPI_BOTTOM;
    case Sentinel::kStatusIgnore:
    case Sentinel::kNone:
      break;
  }
  return buffer;
}

#ifdef HIPS_MPI_ABI_OPENMPI
MPI_Op FromFortran::op(const MPI_Fint* op) {
  return native_mpi()->Op_f2c(*op);
}
MPI_Comm FromFortran::comm(const MPI_Fint* comm) {
  return native_mpi()->Comm_f2c(*comm);
}
MPI_Info FromFortran::info(const MPI_Fint* info) {
  return native_mpi()->Info_f2c(*info);
}
MPI_Datatype FromFortran::type_of(MPI_Fint type) {
  return native_mpi()->Type_f2c(type);
}

MPI_Request request_to_c(MPI_Fint request) {
  return RequestTable::is_ours_in_fortran(request) ? RequestTable::from_fortran(request)
                                                   : native_requests().Request_f2c(request);
}

MPI_Fint request_to_fortran(MPI_Request request) {
  return RequestTable::is_ours(request) ? RequestTable::to_fortran(request)
                                        : native_requests().Request_c2f(request);
}

MPI_Fint op_to_fortran(MPI_Op op) {
  return native_mpi()->Op_c2f(op);
}

MPI_Fint type_to_fortran(MPI_Datatype type) {
  return native_mpi()->Type_c2f(type);
}
#else
// Fortran's handles are those of C.
MPI_Op FromFortran::op(const MPI_Fint* op) {
  return *op;
}
MPI_Comm FromFortran::comm(const MPI_Fint* comm) {
  return *comm;
}
MPI_Info FromFortran::info(const MPI_Fint* info) {
  return *info;
}
MPI_Datatype FromFortran::type_of(MPI_Fint type) {
  return type;
}

MPI_Request request_to_c(MPI_Fint request) {
  return request;
}

MPI_Fint request_to_fortran(MPI_Request request) {
  return request;
}

MPI_Fint op_to_fortran(MPI_Op op) {
  return op;
}

MPI_Fint type_to_fortran(MPI_Datatype type) {
  return type;
}
#endif

MPI_Fint logical_to_fortran(int flag) {
  // From a function whose answer is known.
  static const MPI_Fint true_of_native = [] {
    MPI_Fint value = 1, error = 0;
    NativeFortran<void(MPI_Fint*, MPI_Fint*)> function;
    if (auto* const initialized = function.get("pmpi_initialized_")) initialized(&value, &error);
    return value;
  }();
  return flag ? true_of_native : 0;
}

}  // namespace hips::mpi
