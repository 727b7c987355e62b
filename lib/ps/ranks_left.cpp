#include "lib/ps/ranks_left.hpp"

#include <cstddef>
#include <new>
#include <set>

#include <fmt/format.h>

#include "lib/base/exception_status.hpp"
#include "lib/comm/control/wire.hpp"
#include "lib/comm/setup/agreement.hpp"

namespace hips::ps {

Result<std::vector<Rank>> ranks_left(comm::SetUpExchanges& exchanges, const comm::Communicator& failed,
                                     std::uint64_t id, std::string_view what) {
  comm::ByteWriter writer;
  writer.put(failed.rank());
  writer.put(failed.size());
  writer.put(id);
  const auto told = exchanges.allgather(writer.blob());
  if (!told) return fail(told.error());
  std::vector<Rank> ranks;
  std::set<Rank> different;
  std::uint64_t first_id = 0;
  Rank first_size = 0;
  for (std::size_t r = 0; r < told->size(); ++r) {
    comm::ByteReader reader((*told)[r]);
    const auto rank = reader.get<Rank>(), size = reader.get<Rank>();
    const auto its_id = reader.get<std::uint64_t>();
    if (!reader.ok()) return fail(comm::malformed(static_cast<Rank>(r)));
    if (r == 0) {
      first_id = its_id;
      first_size = size;
    }
    if (its_id != first_id || size != first_size || rank < 0 || rank >= size ||
        !different.insert(rank).second)
      return fail(Code::kInvalidArgument,
                  fmt::format("{}: what rank {} passes is not rank 0's {}; all ranks recover the same one",
                              what, r, what));
    ranks.push_back(rank);
  }
  return ranks;
}

Status attempt_together(comm::Communicator& members, std::string_view what,
                        const std::function<Status()>& attempt) {
  Status mine;
  try {
    mine = attempt();
  } catch (const std::bad_alloc&) {
    mine = status_of_exception();
  }
  const comm::Blob succeeded(1, mine.ok() ? std::byte{1} : std::byte{0});
  const auto parts = members.gather_left(succeeded);
  if (!parts) return parts.error();
  if (!mine.ok()) return mine;
  for (std::size_t r = 0; r < parts->size(); ++r) {
    if ((*parts)[r] == succeeded) continue;
    Status status = Status::error(Code::kPeerLost,
                                  fmt::format("{}: rank {} has ended while it was being recovered", what, r));
    status.rank = static_cast<Rank>(r);
    return status;
  }
  return Status::success();
}

}  // namespace hips::ps
