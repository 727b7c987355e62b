// Learns which features of a text make it belong to a class, by logistic regression on a model that workers train at their own pace.
//
//     HIPS_TOPO=switch:4 HIPS_ROOT=127.0.0.1:29500 mpirun -n 4 logistic_regression
//     ... logistic_regression --shards 1 --workers 3 --loss 0.55 --at-once
//
// Each worker has its own texts. Rank 0 looks at the loss on texts that nobody learns from, and ends the training at --loss. The
// texts are generated from weights that are known: 100 features each, of which some are frequent.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <hips/hips.hpp>
#include <hips/ps_model.hpp>

namespace {

constexpr std::size_t kFeatures = 250'000, kOfText = 100;
constexpr std::size_t kTextsOfStep = 200, kTextsOfTest = 2'000;
constexpr std::size_t kStop = kFeatures;  // an element of the model that is above 0 when the training ends
constexpr float kStep = 1.0F;

struct Options {
  std::uint32_t num_shards = 0;
  int num_workers = 0;  // the last ranks; 0: all
  double loss = 0.6, seconds = 60;
  bool at_once = false;
};

Options parsed(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const char* const value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--at-once") {
      options.at_once = true;
      continue;
    }
    if (name == "--shards") {
      options.num_shards = static_cast<std::uint32_t>(std::atoi(value));
    } else if (name == "--workers") {
      options.num_workers = std::atoi(value);
    } else if (name == "--loss") {
      options.loss = std::atof(value);
    } else if (name == "--seconds") {
      options.seconds = std::atof(value);
    } else {
      std::fprintf(
          stderr,
          "logistic_regression: unknown option \"%s\"; expected --shards N, --workers N, --loss X, --seconds S "
          "or --at-once\n",
          argv[i]);
      std::exit(2);
    }
    ++i;
  }
  return options;
}

struct Text {
  std::vector<std::size_t> features;
  bool is_of_class = false;
};

/// How much a feature says, from -1 to 1; known to those who make the texts.
float true_weight(std::size_t feature) {
  const std::uint64_t mixed = (feature + 1) * 0x9e3779b97f4a7c15U;
  return static_cast<float>(mixed >> 40U) / static_cast<float>(1U << 23U) - 1;
}

float chance(const Text& text, std::span<const float> weights) {
  float sum = 0;
  for (const std::size_t feature : text.features) sum += weights[feature];
  return 1 / (1 + std::exp(-sum));
}

std::vector<Text> drawn(std::size_t num, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(0, 1);
  std::vector<Text> texts(num);
  for (Text& text : texts) {
    float sum = 0;
    for (std::size_t i = 0; i < kOfText; ++i) {
      const double u = uniform(random);
      text.features.push_back(static_cast<std::size_t>(std::pow(u, 3) * static_cast<double>(kFeatures)));
      sum += true_weight(text.features.back());
    }
    text.is_of_class = sum > 0;
  }
  return texts;
}

double loss_of(std::span<const Text> texts, std::span<const float> weights) {
  double sum = 0;
  for (const Text& text : texts) {
    const double right = text.is_of_class ? chance(text, weights) : 1 - chance(text, weights);
    sum -= std::log(std::max(right, 1e-7));
  }
  return sum / static_cast<double>(texts.size());
}

/// The change of the weights that a step makes: the gradient on its texts times the length of the step.
void change(std::span<const Text> texts, std::span<const float> weights, float step,
            std::span<float> update) {
  std::ranges::fill(update, 0.0F);
  for (const Text& text : texts) {
    const float wrong = (text.is_of_class ? 1.0F : 0.0F) - chance(text, weights);
    for (const std::size_t feature : text.features)
      update[feature] += step * wrong / static_cast<float>(texts.size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parsed(argc, argv);
  try {
    hips::Communicator comm = hips::Communicator::from_environment();
    const int num_workers =
        options.num_workers > 0 ? std::min(options.num_workers, comm.size()) : comm.size();
    hips::ps::Model<float> model(comm, {.count = kFeatures + 1,
                                        .num_shards = options.num_shards,
                                        .delay_max = static_cast<std::uint64_t>(4 * num_workers),
                                        .sends_at_once = options.at_once});
    std::vector<float> weights(kFeatures + 1), update(kFeatures + 1);
    std::vector<unsigned char> applied(model.num_shards(), 1);
    std::uint64_t num_steps = 0, num_handed_back = 0;
    comm.barrier();
    const auto begin = std::chrono::steady_clock::now();
    const auto seconds = [&] {
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };

    // Rank 0 may work, too; then another thread looks at the loss.
    const auto look = [&] {
      const std::vector<Text> test = drawn(kTextsOfTest, 0);
      std::vector<float> now(kFeatures + 1);
      double loss = 1;
      while (loss > options.loss && seconds() < options.seconds) {
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        model.fetch(now);
        loss = loss_of(test, now);
        std::printf("%6.1f s  loss %.4f\n", seconds(), loss);
      }
      // Handed back where other updates came first.
      std::vector<unsigned char> ended(model.num_shards(), 0);
      while (ended.back() == 0) {
        std::ranges::fill(now, 0.0F);
        now[kStop] = 1;
        model.push_fetch(now, now, ended);
      }
    };
    // What goes wrong in it ends the calls of all ranks, this thread's included.
    std::thread judge;
    std::exception_ptr failed;
    if (comm.rank() == 0)
      judge = std::thread([&] {
        try {
          look();
        } catch (const std::exception& error) {
          failed = std::current_exception();
          comm.abort(error.what());
        }
      });
    const bool works = comm.rank() >= comm.size() - num_workers;
    try {
      model.fetch(weights);
      for (std::uint64_t seed = 1; works && weights[kStop] == 0; ++seed) {
        const std::vector<Text> texts = drawn(kTextsOfStep, seed * static_cast<std::uint64_t>(comm.size()) +
                                                                static_cast<std::uint64_t>(comm.rank()));
        // Workers add up, so each takes a part of the step.
        change(texts, weights, kStep / static_cast<float>(num_workers), update);
        model.push_fetch(update, weights, applied);
        ++num_steps;
        num_handed_back += static_cast<std::uint64_t>(std::ranges::count(applied, 0));
      }
    } catch (const std::exception& error) {
      comm.abort(error.what());
      if (judge.joinable()) judge.join();
      throw;
    }
    if (judge.joinable()) judge.join();
    if (failed) std::rethrow_exception(failed);
    std::vector<std::uint64_t> sums{num_steps, num_handed_back};
    comm.allreduce(sums, hips::ReduceOp::kSum);
    if (comm.rank() == 0)
      std::printf("%d workers: %llu steps in %.1f s; %llu parts of shards handed back\n", num_workers,
                  static_cast<unsigned long long>(sums[0]), seconds(),
                  static_cast<unsigned long long>(sums[1]));
    comm.barrier();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "logistic_regression: %s\n", error.what());
    return 1;
  }
  return 0;
}
