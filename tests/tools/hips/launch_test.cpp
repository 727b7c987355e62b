#include "tools/hips/run/launch.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "lib/plan/builder.hpp"
#include "lib/plan/formats/plan_json.hpp"
#include "tools/hips/run/job_settings.hpp"

namespace hips::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

Launcher detect(const std::map<std::string, std::string>& variables) {
  return detect_launcher([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

TEST(Launcher, MpirunIsRecognisedByItsVariables) {
  const Launcher launcher = detect({{"OMPI_COMM_WORLD_SIZE", "9"},
                                    {"OMPI_COMM_WORLD_RANK", "4"},
                                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                                    {"PMIX_RANK", "4"}});
  EXPECT_EQ(launcher.kind, LauncherKind::kOpenMpi);
  EXPECT_EQ(launcher.size, 9);
  EXPECT_EQ(launcher.rank, 4);
  EXPECT_EQ(launcher.local_rank, 1);
}

TEST(Launcher, MpirunInsideASlurmJobIsMpirun) {
  const Launcher launcher =
      detect({{"OMPI_COMM_WORLD_SIZE", "9"}, {"SLURM_STEP_ID", "1"}, {"SLURM_PROCID", "0"}});
  EXPECT_EQ(launcher.kind, LauncherKind::kOpenMpi);
}

TEST(Launcher, HydraInsideASlurmJobIsHydra) {
  const Launcher launcher = detect({{"HYDI_CONTROL_FD", "7"},
                                    {"PMI_RANK", "2"},
                                    {"PMI_SIZE", "4"},
                                    {"SLURM_STEP_ID", "1"},
                                    {"SLURM_PROCID", "0"}});
  EXPECT_EQ(launcher.kind, LauncherKind::kHydra);
  EXPECT_EQ(launcher.rank, 2);
  EXPECT_EQ(launcher.size, 4);
}

TEST(Launcher, SrunWithPmixDiffersFromPlainSrun) {
  const std::map<std::string, std::string> plain = {
      {"SLURM_STEP_ID", "0"}, {"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_NTASKS", "16"}};
  EXPECT_EQ(detect(plain).kind, LauncherKind::kSrun);
  EXPECT_EQ(detect(plain).rank, 3);
  EXPECT_EQ(detect(plain).size, 8);
  auto pmix = plain;
  pmix["PMIX_RANK"] = "3";
  EXPECT_EQ(detect(pmix).kind, LauncherKind::kPmix);
  EXPECT_EQ(detect(pmix).size, 8);
  // srun --mpi=pmi2 uses another protocol than PMIx.
  auto pmi2 = plain;
  pmi2["PMI_RANK"] = "3";
  EXPECT_EQ(detect(pmi2).kind, LauncherKind::kPmi2);
  EXPECT_EQ(detect(pmi2).rank, 3);
  EXPECT_EQ(detect(pmi2).size, 8);
}

TEST(Launcher, ABatchScriptAndAShellHaveNoLauncher) {
  EXPECT_EQ(detect({}).kind, LauncherKind::kNone);
  EXPECT_EQ(detect({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}}).kind, LauncherKind::kNone);
  EXPECT_EQ(detect({{"SLURM_PROCID", "0"}, {"SLURM_STEP_ID", "4294967291"}}).kind, LauncherKind::kNone);
}

TEST(Launcher, AMalformedNumberIsNotReadAsARank) {
  EXPECT_EQ(detect({{"OMPI_COMM_WORLD_SIZE", "many"}}).kind, LauncherKind::kNone);
  EXPECT_EQ(detect({{"OMPI_COMM_WORLD_SIZE", "-1"}}).kind, LauncherKind::kNone);
}

TEST(MpiProgram, TheLibraryNameDeterminesTheAbi) {
  EXPECT_EQ(abi_of_library("libmpi.so.40"), MpiAbi::kOpenMpi);
  EXPECT_EQ(abi_of_library("libmpi_mpifh.so.40"), MpiAbi::kOpenMpi);
  EXPECT_EQ(abi_of_library("libmpi_usempif08.so.40"), MpiAbi::kOpenMpi);
  EXPECT_EQ(abi_of_library("libmpi_cxx.so.40"), MpiAbi::kOpenMpi);
  EXPECT_EQ(abi_of_library("libmpi.so.12"), MpiAbi::kMpich);
  EXPECT_EQ(abi_of_library("libmpich.so.12"), MpiAbi::kMpich);
  EXPECT_EQ(abi_of_library("libmpichfort.so.12"), MpiAbi::kMpich);
  EXPECT_EQ(abi_of_library("libmpifort.so.12"), MpiAbi::kMpich);
  EXPECT_EQ(abi_of_library("libmpfr.so.6"), MpiAbi::kUnknown);
  EXPECT_EQ(abi_of_library("libc.so.6"), MpiAbi::kUnknown);
}

TEST(MpiProgram, TheAbiOfAProgramWithoutMpiIsUnknown) {
  const MpiProgram program = inspect_program("/proc/self/exe");
  EXPECT_EQ(program.abi, MpiAbi::kUnknown);
  EXPECT_FALSE(program.is_static);
}

/// A file in a temporary folder.
class ProgramFile : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "hips-launch-XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/app";
  }
  void TearDown() override {
    unlink(path_.c_str());
    rmdir(folder_.c_str());
  }
  void write(const std::string& text, mode_t mode) {
    std::ofstream(path_, std::ios::binary) << text;
    ASSERT_EQ(chmod(path_.c_str(), mode), 0);
  }

  std::string folder_, path_;
};

TEST_F(ProgramFile, OfAnotherUserOrGroupIsSecureWhereItTakesTheirRights) {
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::ostringstream text;
  text << self.rdbuf();
  write(text.str(), 06755);
  EXPECT_FALSE(inspect_program(path_).is_secure) << "they are ours";
  struct statvfs mount {};
  ASSERT_EQ(statvfs(path_.c_str(), &mount), 0);
  if ((mount.f_flag & ST_NOSUID) != 0 || prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1)
    GTEST_SKIP() << "no program gets rights here";
  if (chown(path_.c_str(), 1, static_cast<gid_t>(-1)) != 0)
    GTEST_SKIP() << "gives its file to another user as root only";
  EXPECT_EQ(chmod(path_.c_str(), 0755), 0);
  EXPECT_FALSE(inspect_program(path_).is_secure);
  EXPECT_EQ(chmod(path_.c_str(), 04755), 0);
  EXPECT_TRUE(inspect_program(path_).is_secure);
  EXPECT_EQ(chown(path_.c_str(), 0, 1), 0);
  EXPECT_EQ(chmod(path_.c_str(), 02755), 0);
  EXPECT_TRUE(inspect_program(path_).is_secure);
  EXPECT_EQ(chmod(path_.c_str(), 02745), 0);
  EXPECT_FALSE(inspect_program(path_).is_secure) << "without x of its group the bit means locking";
}

TEST_F(ProgramFile, TheAbiOfAScriptAndOfDamagedElfFilesIsUnknown) {
  write("#!/bin/sh\nexec ./app\n", 0755);
  EXPECT_EQ(inspect_program(path_).abi, MpiAbi::kUnknown);
  EXPECT_FALSE(inspect_program(path_).is_static);
  // An ELF header whose tables are outside the file, truncated at every length.
  std::ifstream self("/proc/self/exe", std::ios::binary);
  std::string head(128, '\0');
  ASSERT_TRUE(self.read(head.data(), 128));
  for (std::size_t length = 0; length <= head.size(); ++length) {
    write(head.substr(0, length), 0755);
    EXPECT_EQ(inspect_program(path_).abi, MpiAbi::kUnknown);
  }
}

TEST_F(ProgramFile, AProgramIsFoundLikeExecvpFindsIt) {
  write("#!/bin/sh\n", 0755);
  EXPECT_EQ(find_program(path_, "").value(), path_);
  EXPECT_EQ(find_program("app", "/nonexistent:" + folder_).value(), path_);
}

TEST_F(ProgramFile, AMissingProgramAndOneThatIsNotExecutableGiveDifferentErrors) {
  write("#!/bin/sh\n", 0644);
  const auto not_executable = find_program(path_, "");
  ASSERT_FALSE(not_executable);
  EXPECT_EQ(not_executable.error().sys_errno, EACCES);
  EXPECT_THAT(not_executable.error().message, HasSubstr("not executable"));
  EXPECT_THAT(find_program("app", folder_).error().message, HasSubstr("not executable"));
  const auto missing = find_program(folder_ + "/other", "");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().sys_errno, ENOENT);
  EXPECT_THAT(find_program("other", folder_).error().message, HasSubstr("not in PATH"));
  EXPECT_THAT(find_program(folder_, "").error().message, HasSubstr("not a regular file"));
}

LaunchRequest request_for(const std::string& spec) {
  LaunchRequest request;
  if (!spec.empty()) request.topology = spec;
  request.command = {"./app", "5"};
  return request;
}

Launcher mpirun(Rank size) {
  return {LauncherKind::kOpenMpi, 0, size, 0};
}

MpiProgram open_mpi_program() {
  return {.path = "./app", .abi = MpiAbi::kOpenMpi, .mpi_library = "libmpi.so.40", .is_static = false};
}

MpiProgram mpich_program() {
  return {.path = "./app", .abi = MpiAbi::kMpich, .mpi_library = "libmpich.so.12", .is_static = false};
}

/// The --mpi name of the interposer that is chosen for a program.
std::string_view chosen(const std::optional<std::string>& option, const MpiProgram& program,
                        LauncherKind kind) {
  const auto interposer = choose_interposer(option, program, {kind, 0, 9, 0});
  return interposer ? (*interposer)->option : "none";
}

/// The error message of a rejected launch; fails if it is accepted.
std::string rejection(const LaunchRequest& request, const MpiProgram& program, const Launcher& launcher) {
  const auto spec = check_launch(request, program, launcher);
  if (spec) {
    ADD_FAILURE() << "not rejected";
    return {};
  }
  EXPECT_THAT(spec.error().message, Not(HasSubstr("\n")));
  return spec.error().message;
}

TEST(Launch, TheNumberOfRanksOfTheTopologyIsAccepted) {
  EXPECT_EQ(check_launch(request_for("bcube:3,1"), open_mpi_program(), mpirun(9))->topology, "bcube:3,1");
}

TEST(Launch, AMultipleOfTheServersGivesEachSeveralRanks) {
  EXPECT_EQ(check_launch(request_for("bcube:2,1"), open_mpi_program(), mpirun(8))->topology, "bcube:2,1/2");
  EXPECT_EQ(check_launch(request_for("bcube:2,1/2"), open_mpi_program(), mpirun(8))->topology, "bcube:2,1/2");
}

TEST(Launch, AnotherNumberOfRanksIsRejectedWithTheRightOne) {
  EXPECT_THAT(
      rejection(request_for("bcube:3,1"), open_mpi_program(), mpirun(8)),
      HasSubstr(
          "bcube:3,1 has 9 ranks, but 8 were started; type: mpirun -n 9 hips run -t bcube:3,1 ./app 5"));
  EXPECT_THAT(rejection(request_for("bcube:2,1/2"), open_mpi_program(), mpirun(16)),
              HasSubstr("mpirun -n 8"));
}

TEST(Launch, OnlyOneRankRunsWithoutALauncher) {
  EXPECT_THAT(rejection(request_for("bcube:3,1"), open_mpi_program(), {}),
              HasSubstr("type: mpirun -n 9 hips run -t bcube:3,1 ./app 5"));
  EXPECT_TRUE(check_launch(request_for("switch:1"), open_mpi_program(), {}));
  EXPECT_TRUE(check_launch(request_for(""), open_mpi_program(), {}));
}

TEST(Launch, TheProgramDeterminesTheInterposerBeforeTheLauncher) {
  const auto all = {LauncherKind::kNone,  LauncherKind::kOpenMpi, LauncherKind::kPmix,
                    LauncherKind::kHydra, LauncherKind::kPmi2,    LauncherKind::kSrun};
  for (const LauncherKind kind : all) {
    EXPECT_EQ(chosen({}, open_mpi_program(), kind), "openmpi");
    EXPECT_EQ(chosen("auto", open_mpi_program(), kind), "openmpi");
    EXPECT_EQ(chosen({}, mpich_program(), kind), "mpich");
    EXPECT_EQ(chosen("mpich", mpich_program(), kind), "mpich");
    // For a script the user's option decides.
    EXPECT_EQ(chosen("openmpi", {}, kind), "openmpi");
    EXPECT_EQ(chosen("mpich", {}, kind), "mpich");
    const bool is_of_mpich = kind == LauncherKind::kHydra || kind == LauncherKind::kPmi2;
    EXPECT_EQ(chosen({}, {}, kind), is_of_mpich ? "mpich" : "openmpi");
  }
}

TEST(Launch, AnotherMpiThanTheProgramsIsRejected) {
  LaunchRequest request = request_for("bcube:3,1");
  request.mpi = "openmpi";
  EXPECT_THAT(rejection(request, mpich_program(), mpirun(9)),
              HasSubstr("./app needs libmpich.so.12 of MPICH; remove --mpi openmpi"));
  request.mpi = "mpich";
  EXPECT_THAT(rejection(request, open_mpi_program(), mpirun(9)), HasSubstr("libmpi.so.40 of Open MPI"));
}

TEST(Launch, HydraRunsProgramsOfMpichButNotOfOpenMpi) {
  const Launcher hydra{LauncherKind::kHydra, 0, 9, 0};
  EXPECT_THAT(rejection(request_for("bcube:3,1"), open_mpi_program(), hydra),
              HasSubstr("type: mpirun.openmpi -n 9 hips run -t bcube:3,1 ./app 5"));
  for (const MpiProgram& program : {mpich_program(), MpiProgram{}}) {
    const auto launch = check_launch(request_for("bcube:3,1"), program, hydra);
    ASSERT_TRUE(launch);
    EXPECT_EQ(launch->topology, "bcube:3,1");
    EXPECT_EQ(launch->interposer->library, "libhips_mpich.so");
  }
  EXPECT_THAT(rejection(request_for("bcube:3,1"), mpich_program(), {LauncherKind::kHydra, 0, 8, 0}),
              HasSubstr("type: mpiexec.hydra -n 9 hips run"));
}

TEST(Launch, WhatIsToBeTypedIsQuotedAndHasAllOptions) {
  LaunchRequest request = request_for("bcube:3,1");
  request.others = {"--adopt", "always", "--report=my report.json"};
  request.command = {"sh", "-c", "echo 'a'; exit 7", ""};
  EXPECT_THAT(
      rejection(request, mpich_program(), mpirun(9)),
      HasSubstr("hips run -t bcube:3,1 --adopt always '--report=my report.json' sh -c 'echo '\\''a'\\''; "
                "exit 7' ''"));
}

TEST(Launch, MpirunIsRejectedForProgramsOfMpich) {
  EXPECT_THAT(rejection(request_for("bcube:3,1"), mpich_program(), mpirun(9)),
              HasSubstr("type: mpiexec.hydra -n 9 hips run -t bcube:3,1 ./app 5"));
  EXPECT_THAT(rejection(request_for("bcube:3,1"), mpich_program(), {}),
              HasSubstr("no launcher started them; type: mpiexec.hydra -n 9 hips run"));
}

TEST(Launch, SrunIsAcceptedOnlyWithAProtocolOfTheProgramsMpi) {
  const auto srun = [](LauncherKind kind) { return Launcher{kind, 0, 9, 0}; };
  for (const LauncherKind kind : {LauncherKind::kSrun, LauncherKind::kPmi2})
    EXPECT_THAT(rejection(request_for("bcube:3,1"), open_mpi_program(), srun(kind)),
                HasSubstr("type: srun --mpi=pmix -n 9 hips run -t bcube:3,1 ./app 5"));
  EXPECT_THAT(rejection(request_for("bcube:3,1"), mpich_program(), srun(LauncherKind::kSrun)),
              HasSubstr("type: mpiexec.hydra -n 9 hips run -t bcube:3,1 ./app 5"));
  EXPECT_TRUE(check_launch(request_for("bcube:3,1"), open_mpi_program(), srun(LauncherKind::kPmix)));
  EXPECT_TRUE(check_launch(request_for("bcube:3,1"), mpich_program(), srun(LauncherKind::kPmix)));
  EXPECT_TRUE(check_launch(request_for("bcube:3,1"), mpich_program(), srun(LauncherKind::kPmi2)));
  // PMIx variables do not tell the number of ranks; MPI_Init checks it.
  EXPECT_TRUE(check_launch(request_for("bcube:3,1"), open_mpi_program(), {LauncherKind::kPmix, 0, {}, {}}));
}

TEST(Launch, AStaticProgramIsRejected) {
  MpiProgram program;
  program.is_static = true;
  EXPECT_THAT(rejection(request_for("bcube:3,1"), program, mpirun(9)), HasSubstr("linked statically"));
}

TEST(Launch, AProgramThatGetsRightsIsRejected) {
  MpiProgram program = open_mpi_program();
  program.is_secure = true;
  EXPECT_THAT(rejection(request_for("bcube:3,1"), program, mpirun(9)),
              HasSubstr("setuid, setgid or capabilities"));
}

TEST(Launch, AProgramOfTheLibraryIsRejectedUnlessItAlsoUsesMpi) {
  MpiProgram program;
  program.uses_hips_library = true;
  EXPECT_THAT(
      rejection(request_for(""), program, mpirun(9)),
      HasSubstr(
          "calls the HiPS library itself and makes no MPI calls to intercept; start it without hips run"));
  program = open_mpi_program();
  program.uses_hips_library = true;
  EXPECT_TRUE(check_launch(request_for(""), program, mpirun(9)));
}

TEST(Launch, WarnsOfAProgramWithoutMpiAndOfAMissingLauncher) {
  EXPECT_EQ(check_launch(request_for(""), open_mpi_program(), mpirun(9))->warning, "");
  EXPECT_THAT(
      check_launch(request_for(""), open_mpi_program(), {})->warning,
      HasSubstr("no launcher started this program, so that it is one rank; type: mpirun -n RANKS hips run"));
  MpiProgram program;
  program.makes_no_mpi_calls = true;
  EXPECT_THAT(check_launch(request_for(""), program, mpirun(2))->warning, HasSubstr("needs no MPI library"));
}

TEST(JobSettings, NameTheOptionOrVariableThatIsWrong) {
  const auto wrong = [](const NamedByCommandLine& named, const Config& config,
                        const std::optional<Topology>& topology) {
    const Status status = check_job_settings(named, config, topology);
    EXPECT_FALSE(status.ok());
    return status.message;
  };
  const std::optional<Topology> bcube = parse_topology("bcube:3,1");
  EXPECT_THAT(wrong({.algorithm = "flat-rong", .pattern = {}}, {}, bcube),
              AllOf(StartsWith("--algorithm: "), HasSubstr("flat-rong")));
  EXPECT_THAT(wrong({.algorithm = {}, .pattern = "mesh,ring,mesh"}, {}, bcube), StartsWith("--pattern: "));
  Config config;
  config.algorithm = "foo";
  for (const std::optional<Topology>& topology :
       {std::optional<Topology>(), bcube, std::optional(parse_topology("switch:1"))})
    EXPECT_THAT(wrong({}, config, topology), AllOf(StartsWith("HIPS_ALGORITHM: "), HasSubstr("\"foo\"")));
  EXPECT_TRUE(check_job_settings({.algorithm = "hips", .pattern = {}}, config, bcube).ok());
  config = {};
  config.pattern = "star";
  EXPECT_THAT(wrong({}, config, {}), StartsWith("HIPS_PATTERN: "));
  config = {};
  config.plan_file = "/nope";
  EXPECT_THAT(wrong({}, config, {}), AllOf(StartsWith("HIPS_PLAN_FILE: "), HasSubstr("/nope")));
  EXPECT_THAT(wrong({.algorithm = "hips", .pattern = {}}, config, {}),
              HasSubstr("--algorithm and HIPS_PLAN_FILE both name the plan; remove one"));
  config = {};
  config.select_table = "/nope";
  EXPECT_THAT(wrong({}, config, bcube), StartsWith("HIPS_SELECT_TABLE: "));
}

TEST(JobSettings, AcceptWhatFits) {
  // Native MPI executes the calls of communicators that a stored plan does not fit.
  Config config;
  config.plan_file = testing::TempDir() + "hips-job-settings.json";
  {
    std::ofstream file(*config.plan_file);
    const Topology topology = parse_topology("switch:2");
    const auto builder = plan::make_builder(topology, {}).value();
    plan::PlanJsonWriter writer(file, builder->shape());
    for (Rank rank = 0; rank < 2; ++rank) writer.add(builder->program(rank));
    writer.finish();
  }
  EXPECT_TRUE(check_job_settings({}, config, parse_topology("switch:2")).ok());
  EXPECT_TRUE(check_job_settings({}, config, parse_topology("switch:3")).ok());
  unlink(config.plan_file->c_str());
  EXPECT_TRUE(check_job_settings({}, {}, {}).ok());
  EXPECT_TRUE(check_job_settings({.algorithm = "swing", .pattern = {}}, {}, {}).ok());  // of a torus, maybe
  EXPECT_TRUE(
      check_job_settings({.algorithm = {}, .pattern = "mesh,ring"}, {}, parse_topology("bcube:3,1")).ok());
}

TEST(MpiProgram, OneThatCanNeitherLoadALibraryNorStartAProgramMakesNoMpiCalls) {
  EXPECT_TRUE(inspect_program("/bin/true").makes_no_mpi_calls);
  EXPECT_FALSE(inspect_program("/usr/bin/env").makes_no_mpi_calls);
  EXPECT_FALSE(inspect_program("/bin/sh").makes_no_mpi_calls);
}

TEST(MpiProgram, ALoaderIsFoundWhereverItIsNamedInALargeProgram) {
  std::ifstream of_true("/bin/true", std::ios::binary);
  std::ostringstream bytes;
  bytes << of_true.rdbuf();
  const std::string path = testing::TempDir() + "hips_large_program";
  const auto with_name_at = [&](std::size_t place) {
    std::string text = bytes.str();
    text.resize(place);
    text += std::string("\0posix_spawnp\0", 14);
    text.resize(text.size() + 300'000);
    std::ofstream(path, std::ios::binary) << text;
    return inspect_program(path);
  };
  for (const std::size_t boundary : {std::size_t{1} << 18, std::size_t{2} << 18}) {
    for (std::size_t place = boundary - 16; place <= boundary + 1; ++place)
      EXPECT_FALSE(with_name_at(place).makes_no_mpi_calls) << place;
  }
  EXPECT_TRUE(inspect_program("/bin/true").makes_no_mpi_calls);
  unlink(path.c_str());
}

TEST(Launch, InvalidSpecsAndMpisAreRejected) {
  EXPECT_THAT(rejection(request_for("bcube:3"), open_mpi_program(), mpirun(9)), HasSubstr("bcube:3"));
  LaunchRequest request = request_for("bcube:3,1");
  request.mpi = "mvapich";
  EXPECT_THAT(rejection(request, {}, mpirun(9)),
              HasSubstr("unknown MPI \"mvapich\"; expected openmpi, mpich or auto"));
}

TEST(Launch, AnExistingPreloadIsKept) {
  EXPECT_EQ(add_to_preload("", "/l/libhips_mpi.so"), "/l/libhips_mpi.so");
  EXPECT_EQ(add_to_preload("a.so b.so", "/l/libhips_mpi.so"), "/l/libhips_mpi.so:a.so b.so");
  EXPECT_EQ(add_to_preload("a.so:/l/libhips_mpi.so", "/l/libhips_mpi.so"), "a.so:/l/libhips_mpi.so");
}

}  // namespace
}  // namespace hips::cli
