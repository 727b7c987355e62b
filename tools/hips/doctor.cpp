#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "tools/doctor/file_tree.hpp"
#include "tools/doctor/job.hpp"
#include "tools/doctor/judge.hpp"
#include "tools/doctor/probe.hpp"
#include "tools/doctor/report.hpp"
#include "tools/hips/beside.hpp"
#include "tools/hips/command.hpp"
#include "tools/hips/meeting.hpp"

namespace hips::cli {
namespace {

using doctor::Findings;
using doctor::Level;

constexpr const char* kDoctorFooter =
    R"(Alone it looks at this host. Under mpirun or srun, or with HIPS_RANK, HIPS_SIZE and HIPS_ROOT set, the ranks also
compare what they have and try every way that HiPS would use: small and large messages over shared memory and over
each NIC. Rank 0 prints. Every warning and error has the line that fixes it. Exit code: 0 without an error, else 1.

  hips doctor
  mpirun -n 4 --map-by ppr:1:node hips doctor
  mpirun -x HIPS_TOPO=bcube:2,1 hips doctor        tries the NICs that the topology joins
  HIPS_TRANSPORT=verbs mpirun hips doctor          tries NICs inside a host, too

JSON keys:
  ranks[]:     host kernel version transports limits{} devices[]: name driver model firmware ports[]: state rate mtu
               interface{} rails[] counters{} gids[]: index type address taken
  reach[]:     from to (ranks) over (shm, verbs) from_nic to_nic ok small_ok round_trip_us error
  findings[]:  level (ok, note, warning, error) where text fix
)";

struct DoctorOptions {
  bool json = false;
  bool all_nics = false;
  int timeout_s = 120;
};

/// What one process knows before it meets others.
struct Own {
  LoadedConfig loaded;
  doctor::Host host;
  doctor::RailChoice rails;
  std::string transports;
  Findings findings;
};

Own look() {
  Own own;
  own.loaded = load_config(process_environment());
  own.host = doctor::look_at_host(doctor::FileTree());
  own.rails = doctor::choose_rails(own.host, own.loaded.config.rdma);
  own.transports = doctor::transports_text(own.host, own.loaded.config, own.rails);
  own.findings = doctor::judge_host(own.host, own.loaded, own.rails);
  return own;
}

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

/// One host, and what came of meeting others, where that failed.
int tell_alone(const DoctorOptions& options, const Own& own, const Findings& findings) {
  if (options.json) {
    nlohmann::ordered_json json;
    json["ranks"] = nlohmann::ordered_json::array({doctor::host_json(own.host, own.rails, own.transports)});
    json["reach"] = nlohmann::ordered_json::array();
    json["findings"] = doctor::findings_json(findings);
    print(json.dump(2) + "\n");
  } else {
    print(doctor::host_text(own.host, own.rails, own.transports) + "\n" + doctor::findings_text(findings));
  }
  return doctor::any_error(findings) ? 1 : 0;
}

/// The ranks did not come together, or not to the end: rank 0 says who is missing, beside what it sees
/// itself.
int tell_failure(const DoctorOptions& options, Own own, Rank rank, const Status& status,
                 const std::string& where) {
  if (rank == 0) {
    own.findings.push_back(
        {Level::kError, where, status.message,
         "see that these ranks run (their own output, ps, dmesg), and that TCP passes between the "
         "hosts: iptables -I INPUT -p tcp -s HOST -j ACCEPT"});
    return tell_alone(options, own, own.findings);
  }
  // Rank 0 tells what it knows; what only this rank knows is that it is not there.
  if (status.code == Code::kPeerLost || status.message.find("could not reach rank 0") != std::string::npos)
    std::fprintf(stderr, "hips: doctor: rank %d on %s: %s\n", rank, own.host.name.c_str(),
                 status.message.c_str());
  // A launcher ends the job with the first rank that fails: rank 0 goes first.
  std::this_thread::sleep_for(std::chrono::seconds(2));
  return 1;
}

/// Ends a process that drivers or devices keep: this command looks at what is broken, and must not hang with
/// it.
void start_watch(const DoctorOptions& options, Rank rank) {
  constexpr int kMeetingAndLooking = 120;
  const int seconds = options.timeout_s + kMeetingAndLooking;
  std::thread([seconds, rank] {
    std::this_thread::sleep_for(std::chrono::seconds(seconds));
    std::fprintf(
        stderr,
        "hips: doctor: rank %d does not get ahead for %d s; a device or driver does not answer: dmesg\n",
        rank, seconds);
    _exit(1);
  }).detach();
}

Result<std::vector<doctor::RankReport>> gather(comm::Bootstrap& bootstrap, const doctor::RankReport& mine) {
  const std::string text = doctor::encode(mine);
  const auto all = bootstrap.allgather(std::as_bytes(std::span(text.data(), text.size())));
  if (!all) return fail(all.error());
  std::vector<doctor::RankReport> reports;
  for (const comm::Blob& blob : *all) {
    auto report = doctor::decode_report(std::string(reinterpret_cast<const char*>(blob.data()), blob.size()));
    if (!report) return fail(std::move(report).error());
    reports.push_back(*std::move(report));
  }
  return reports;
}

/// The trials of all ranks, at every rank.
Result<std::vector<doctor::Trial>> gather(comm::Bootstrap& bootstrap,
                                          const std::vector<doctor::Trial>& mine) {
  comm::ByteWriter writer;
  writer.put(static_cast<std::uint32_t>(mine.size()));
  for (const doctor::Trial& trial : mine) {
    writer.put(trial.way.a);
    writer.put(trial.way.b);
    writer.put(trial.way.a_rail);
    writer.put(trial.way.b_rail);
    writer.put(trial.from);
    writer.put(trial.rtt_us);
    writer.put(static_cast<std::uint8_t>(trial.small_ok));
    writer.put(static_cast<std::uint8_t>(trial.large_ok));
    writer.put_text(trial.error);
  }
  const auto all = bootstrap.allgather(writer.blob());
  if (!all) return fail(all.error());
  std::vector<doctor::Trial> trials;
  for (const comm::Blob& blob : *all) {
    comm::ByteReader reader(blob);
    const auto count = reader.get<std::uint32_t>();
    for (std::uint32_t i = 0; i < count && reader.ok(); ++i) {
      doctor::Trial trial;
      trial.way.a = reader.get<Rank>();
      trial.way.b = reader.get<Rank>();
      trial.way.a_rail = reader.get<Rail>();
      trial.way.b_rail = reader.get<Rail>();
      trial.from = reader.get<Rank>();
      trial.rtt_us = reader.get<double>();
      trial.small_ok = reader.get<std::uint8_t>() != 0;
      trial.large_ok = reader.get<std::uint8_t>() != 0;
      trial.error = reader.get_text();
      trials.push_back(std::move(trial));
    }
  }
  return trials;
}

int tell_job(const DoctorOptions& options, const Own& own, const std::vector<doctor::RankReport>& reports,
             const std::vector<doctor::Trial>& trials, std::size_t untried) {
  Findings findings = doctor::merge_findings(reports);
  for (const Findings& part : {doctor::compare_ranks(reports), doctor::judge_reach(reports, trials, untried)})
    findings.insert(findings.end(), part.begin(), part.end());
  if (options.json) {
    nlohmann::ordered_json json;
    json["ranks"] = nlohmann::ordered_json::array();
    for (const doctor::RankReport& report : reports) json["ranks"].push_back(report.details);
    json["reach"] = doctor::trials_json(reports, trials);
    json["findings"] = doctor::findings_json(findings);
    print(json.dump(2) + "\n");
  } else {
    print(doctor::host_text(own.host, own.rails, own.transports) + "\n" + doctor::job_text(reports, trials) +
          "\n" + doctor::findings_text(findings));
  }
  return doctor::any_error(findings) ? 1 : 0;
}

int run_together(const DoctorOptions& options, Own own, comm::TcpRendezvous rendezvous) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  doctor::ProbeOptions probing;
  probing.budget_ns = options.timeout_s * kSecond;
  rendezvous.connect_timeout_ns = std::min(rendezvous.connect_timeout_ns, 30 * kSecond);
  rendezvous.exchange_timeout_ns = probing.patience_ns + 30 * kSecond;
  auto bootstrap = comm::make_tcp_bootstrap(rendezvous);
  if (!bootstrap) return tell_failure(options, std::move(own), rendezvous.rank, bootstrap.error(), "meeting");

  doctor::RankReport mine = doctor::report_of(rendezvous.rank, own.host, own.loaded.config, own.rails);
  mine.findings = own.findings;
  mine.details = doctor::host_json(own.host, own.rails, own.transports);
  const doctor::Instruments instruments = doctor::Instruments::make(own.loaded.config, mine);
  const auto reports = gather(**bootstrap, mine);
  if (!reports) return tell_failure(options, std::move(own), rendezvous.rank, reports.error(), "reports");
  const auto ways = doctor::ways_to_try(*reports, options.all_nics);
  auto probed = doctor::probe(**bootstrap, instruments, ways, probing);
  if (!probed) return tell_failure(options, std::move(own), rendezvous.rank, probed.error(), "reach");
  const auto trials = gather(**bootstrap, probed->trials);
  if (!trials) return tell_failure(options, std::move(own), rendezvous.rank, trials.error(), "reach");
  if (rendezvous.rank != 0) return 0;
  return tell_job(options, own, *reports, *trials, probed->untried);
}

/// Runs this command again where hips-meet has told it who the others are.
[[noreturn]] void meet_by_pmix(const DoctorOptions& options) {
  const auto helper = find_beside("../doctor/hips-meet", "hips/hips-meet");
  if (!helper)
    throw Error(
        Status::error(Code::kUnsupported,
                      "doctor: this build has no PMIx (libpmix-dev), by which mpirun's ranks find each "
                      "other; give rank 0's address: mpirun -x HIPS_ROOT=node0:18500 hips doctor"));
  constexpr const char* kPatienceS = "60";
  const std::string timeout = std::to_string(options.timeout_s);
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  std::vector<const char*> argv{helper->c_str(), kPatienceS,  self.c_str(),
                                "doctor",        "--timeout", timeout.c_str()};
  if (options.json) argv.push_back("--json");
  if (options.all_nics) argv.push_back("--all-nics");
  argv.push_back(nullptr);
  execv(argv[0], const_cast<char* const*>(argv.data()));
  throw Error(Status::error(Code::kSystem,
                            fmt::format("doctor: cannot execute {}: {}", *helper, std::strerror(errno))));
}

int run(const DoctorOptions& options) {
  const Launcher launcher = detect_launcher([](const char* name) { return std::getenv(name); });
  const Environment environment = process_environment();
  const Meeting meeting =
      value_or_throw(find_meeting(load_config(environment).config, environment, launcher));
  if (meeting.how == Meeting::How::kByPmix) meet_by_pmix(options);
  start_watch(options, meeting.rendezvous.rank);
  Own own = look();
  if (meeting.how == Meeting::How::kAlone) return tell_alone(options, own, own.findings);
  return run_together(options, std::move(own), meeting.rendezvous);
}

}  // namespace

void add_doctor(CLI::App& app) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Looks at NICs, addresses, limits and counters; under mpirun also at who reaches whom");
  command->add_flag("--json", options->json, "the same for machines");
  command->add_flag("--all-nics", options->all_nics,
                    "tries every NIC with every other, to find cables that are in the wrong place");
  command->add_option("--timeout", options->timeout_s, "seconds for all trials between ranks")
      ->capture_default_str()
      ->check(CLI::Range(1, 86400));
  command->footer(kDoctorFooter);
  command->callback([options] {
    if (const int code = run(*options); code != 0) throw CLI::RuntimeError(code);
  });
}

}  // namespace hips::cli
